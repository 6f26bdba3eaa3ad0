"""How far a what-if question is: counters in memory that its forked processes share with control's process."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Final

from corral.control.what_if.course import SAMPLES
from corral.model.what_if_progress import AFTER, BEFORE, PREPARING, READING, WAITING, WhatIfProgress

LOOKS: Final = SAMPLES + 1
"""How often the progress of one course is counted."""
_STAGES: Final = (PREPARING, READING, BEFORE, AFTER)
_FIELDS: Final = 3
"""Integers of a process: times that its courses were looked at, seeds that are done, its stage."""


class ProcessProgress:
    """The counters of one forked process, which alone writes to them."""

    def __init__(self, cells: memoryview, looks: int) -> None:
        """`cells` are `_FIELDS` shared integers; `looks` is the count at its end."""
        self._cells = cells
        self.looks = looks

    def begin(self, stage: str) -> None:
        """Enter a stage."""
        self._cells[2] = _STAGES.index(stage)

    def look(self) -> None:
        """Count one of the `LOOKS` of a course."""
        self._cells[0] += 1

    def seed_done(self) -> None:
        """Count a seed whose courses are both played."""
        self._cells[1] += 1

    @property
    def counted(self) -> tuple[int, int, str]:
        """Looks, seeds that are done, and the stage."""
        return min(self._cells[0], self.looks), self._cells[1], _STAGES[self._cells[2]]


class QuestionProgress:
    """The progress of one question, from its wait for a turn to its last course."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._processes: Sequence[ProcessProgress] = ()

    def shared_by(self, looks: Sequence[int]) -> Sequence[ProcessProgress]:
        """Make the counters of the processes that are forked next; `looks` is what each of them counts in all."""
        cells = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")
        self._processes = tuple(
            ProcessProgress(cells[_FIELDS * at : _FIELDS * (at + 1)], count) for at, count in enumerate(looks)
        )
        return self._processes

    def told(self) -> WhatIfProgress:
        """The progress now. Of several processes, the stage is that of the first one that still plays."""
        if not self._processes:
            return WhatIfProgress(stage=WAITING, courses=self._seeds)
        counted = [each.counted for each in self._processes]
        done = sum(seeds for _, seeds, _ in counted)
        whole = sum(each.looks for each in self._processes)
        plays = [
            stage for (looks, _, stage), process in zip(counted, self._processes, strict=True) if looks < process.looks
        ]
        stage = plays[0] if plays else AFTER
        course = min(self._seeds, done + 1) if stage in (BEFORE, AFTER) else 0
        fraction = sum(looks for looks, _, _ in counted) / whole if whole else 0.0
        return WhatIfProgress(fraction, stage, course, self._seeds)
