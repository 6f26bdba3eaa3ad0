"""Find tasks that report no step any more while the other tasks of their gang go on.

Only reported steps count. A gang that stops as a whole has its reason in the program or in what all tasks share, so
none of its nodes is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from corral.kernel.ids import JobId, TaskKey
from corral.model.hangs.patience import LEAST_SECONDS, learnt

_LEAST_REPORTS: Final = 3
"""Reports of progress before a task's own pace is known."""
_MOST_GANGS: Final = 2_000
_MOST_TASKS: Final = 512

NodeOf = Callable[[JobId, TaskKey], str]
"""Tells the node of a task that runs, or ""."""


class HangingTask(NamedTuple):
    """A task that stopped reporting steps while its peers went on."""

    job: JobId
    key: TaskKey
    node: str
    seconds: float
    """Seconds since its last step."""
    step_seconds: float
    """Seconds that one of its steps took before."""


@dataclass(slots=True)
class _Track:
    """The steps of one task on one node. Times are in seconds since 1970."""

    node: str
    first: float
    first_at: float
    step: float
    at: float
    """When the last step was reported."""
    reports: int = 1
    longest: float = 0.0
    """The longest time between two reports of progress, in seconds."""
    finished: bool = False
    told: bool = False

    def progress(self, step: float, at: float) -> None:
        self.longest = max(self.longest, at - self.at)
        self.step, self.at, self.told = step, at, False
        self.reports += 1

    @property
    def step_seconds(self) -> float:
        return (self.at - self.first_at) / (self.step - self.first)

    @property
    def limit(self) -> float:
        """Seconds without a step after which it hangs."""
        return max(LEAST_SECONDS, learnt(self.step_seconds, self.longest))


@dataclass(slots=True)
class _Gang:
    attempt: int
    tasks: dict[TaskKey, _Track] = field(default_factory=dict)


class Hangs:
    """The last steps of the tasks of gangs; of more than 2,000 gangs the oldest are forgotten."""

    def __init__(self) -> None:
        self._gangs: dict[JobId, _Gang] = {}

    def reported(
        self, job: JobId, attempt: int, key: TaskKey, node: str, step: float, at: float, steps: float | None = None
    ) -> None:
        """Take a report of a task's step, and of the `steps` of its whole work if it told them."""
        gang = self._gangs.get(job)
        if gang is None or gang.attempt != attempt:
            self._gangs.pop(job, None)
            if len(self._gangs) >= _MOST_GANGS:
                del self._gangs[next(iter(self._gangs))]
            gang = self._gangs[job] = _Gang(attempt)
        track = gang.tasks.get(key)
        if track is None or track.node != node or step < track.step:
            if track is not None or len(gang.tasks) < _MOST_TASKS:
                gang.tasks[key] = track = _Track(node, step, at, step, at)
        elif step > track.step and at > track.at:
            track.progress(step, at)
        if track is not None:
            track.finished = steps is not None and step >= steps

    def forget(self, job: JobId) -> None:
        """Forget a job that is over."""
        self._gangs.pop(job, None)

    def look(self, node_of: NodeOf, now: float) -> Iterator[HangingTask]:
        """The tasks that hang since the last call: those that stopped for their whole limit before another one did."""
        for job, gang in self._gangs.items():
            known = {
                key: track
                for key, track in gang.tasks.items()
                if track.reports >= _LEAST_REPORTS and node_of(job, key) == track.node
            }
            if len(known) < 2:
                continue
            latest = max(track.at for track in known.values())
            behind = {
                key: track for key, track in known.items() if not track.finished and latest - track.at > track.limit
            }
            if 2 * len(behind) > len(known):
                continue
            for key, track in behind.items():
                if not track.told:
                    track.told = True
                    yield HangingTask(job, key, track.node, now - track.at, track.step_seconds)
