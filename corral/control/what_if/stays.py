"""What ran where during a course: the stays of jobs on the devices of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from corral.control.core.world import Job
from corral.kernel.ids import AttemptId
from corral.model.runs import TaskRun
from corral.model.what_if import MOST_STAYS, Stay

_MOST_RECORDED: Final = 50_000
"""Attempts of tasks that are recorded; of later ones only the count is told."""


@dataclass(slots=True)
class _Attempt:
    job: Job
    node: str
    devices: tuple[int, ...]
    begin: float
    end: float = inf


class Stays:
    """Records attempts of tasks with devices as they begin and end; times are in seconds after the question."""

    def __init__(self) -> None:
        self._attempts: dict[AttemptId, _Attempt] = {}
        self._unrecorded = 0

    def begin(self, job: Job, task: TaskRun, at: float) -> None:
        """Record that the present attempt of a task holds its devices; nothing for a task without a device."""
        placement, attempt = task.placement, job.run.attempt_of(task)
        if placement is None or not placement.devices or attempt in self._attempts:
            return
        if len(self._attempts) == _MOST_RECORDED:
            self._unrecorded += 1
            return
        self._attempts[attempt] = _Attempt(job, placement.node, placement.devices, at)

    def end(self, attempt: AttemptId, at: float) -> None:
        """Record that an attempt has ended."""
        known = self._attempts.get(attempt)
        if known is not None:
            known.end = min(known.end, at)

    def told(self, most: int | None = None) -> tuple[list[Stay], int]:
        """At most `most` stays (None: `MOST_STAYS`), earliest first, and how many are left out.

        Tasks of a job that began and ended together on one node are one stay.
        """
        found: dict[tuple[str, str, float, float], set[int]] = {}
        jobs: dict[str, Job] = {}
        for each in self._attempts.values():
            jobs[each.job.id] = each.job
            found.setdefault((each.job.id, each.node, each.begin, each.end), set()).update(each.devices)
        stays = [
            Stay(
                job=job,
                name=jobs[job].name,
                user=jobs[job].user,
                queue=jobs[job].terms.queue,
                node=node,
                devices=tuple(sorted(devices)),
                begin=begin,
                end=None if end == inf else end,
            )
            for (job, node, begin, end), devices in found.items()
        ]
        stays.sort(key=lambda stay: (stay.begin, stay.node, stay.devices))
        most = MOST_STAYS if most is None else most
        return stays[:most], max(0, len(stays) - most) + self._unrecorded
