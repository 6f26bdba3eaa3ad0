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
"""Integers of a process: times that its courses were looked at, courses that are done, its stage."""


class ProcessProgress:
    """The counters of one forked process, which alone writes to them."""

    def __init__(self, cells: memoryview, courses: int) -> None:
        """`cells` are `_FIELDS` shared integers; `courses` are all that it plays."""
        self._cells = cells
        self.courses = courses
        self.looks = LOOKS * courses
        """The count of looks at its end."""

    def begin(self, stage: str) -> None:
        """Enter a stage."""
        self._cells[2] = _STAGES.index(stage)

    def look(self) -> None:
        """Count one of the `LOOKS` of a course."""
        self._cells[0] += 1

    def course_done(self) -> None:
        """Count a course that is played."""
        self._cells[1] += 1

    def course_known(self) -> None:
        """Count a course that is the same as one that was played."""
        self._cells[0] += LOOKS
        self._cells[1] += 1

    @property
    def counted(self) -> tuple[int, int, str]:
        """Looks, courses that are done, and the stage."""
        return min(self._cells[0], self.looks), self._cells[1], _STAGES[self._cells[2]]


class QuestionProgress:
    """The progress of one question, from its wait for a turn to its last course."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._processes: Sequence[ProcessProgress] = ()

    def shared_by(self, courses: Sequence[int]) -> Sequence[ProcessProgress]:
        """Make the counters of the processes that are forked next; `courses` is how many each of them plays."""
        cells = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")
        self._processes = tuple(
            ProcessProgress(cells[_FIELDS * at : _FIELDS * (at + 1)], count) for at, count in enumerate(courses)
        )
        return self._processes

    def told(self) -> WhatIfProgress:
        """The progress now. Of several processes, the stage is that of the first one that still plays."""
        if not self._processes:
            return WhatIfProgress(stage=WAITING, courses=self._seeds)
        counted = [each.counted for each in self._processes]
        courses = sum(each.courses for each in self._processes)
        done = sum(played for _, played, _ in counted) * self._seeds // courses if courses else 0
        whole = sum(each.looks for each in self._processes)
        plays = [
            stage for (looks, _, stage), process in zip(counted, self._processes, strict=True) if looks < process.looks
        ]
        stage = plays[0] if plays else AFTER
        course = min(self._seeds, done + 1) if stage in (BEFORE, AFTER) else 0
        fraction = sum(looks for looks, _, _ in counted) / whole if whole else 0.0
        return WhatIfProgress(fraction, stage, course, self._seeds)
