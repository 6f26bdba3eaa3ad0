"""Find tasks whose reported steps are slower than those of their peers in the same gang.

Only reported steps count, never utilisation. The steps per second of a task are compared with the median of the other
tasks over a window. A gang whose tasks wait for each other in every step has one pace, and tells something only if each
task reports its waits: the one that the others wait for waits least.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from corral.model.hangs.scores import Progress, RankScores, own_paces, peers_of, ranked, waits
from corral.model.hangs.scores import pace as pace_of
from corral.model.hangs.scores import score as score_of

SLOWER: Final = 0.2
"""The part by which a task has to be slower."""
_WINDOW_SECONDS: Final = 600.0
_LEAST_SECONDS: Final = 240.0
"""The shortest part of a window over which a task's pace is known."""
_RECENT_SECONDS: Final = 300.0
_MOST_RECENT: Final = 32
"""Reports of one task that the score of now looks at, and their age."""
_MOST_GANGS: Final = 2_000
_MOST_TASKS: Final = 512


class SlowTask(NamedTuple):
    """A task that was slower than its peers over a window."""

    job: str
    node: str
    task: str
    pace: float
    """Steps per second."""
    peers: float
    """The median of the others."""
    alone: bool = False
    """Whether these are the paces without waits for each other."""


@dataclass(slots=True)
class _Track:
    """The steps of one task in a window."""

    node: str
    first: Progress
    last: Progress
    recent: list[Progress] = field(default_factory=list)
    """Its last reports, for the score of now."""

    def take(self, said: Progress) -> None:
        """Take a report for the score of now; a program that began again has a new pace."""
        if self.recent and (said.step < self.recent[-1].step or said.at <= self.recent[-1].at):
            if said.at <= self.recent[-1].at:
                return
            self.recent.clear()
        self.recent.append(said)
        oldest = said.at - _RECENT_SECONDS
        while len(self.recent) > 2 and (len(self.recent) > _MOST_RECENT or self.recent[0].at < oldest):
            del self.recent[0]

    def pace(self) -> float | None:
        """Steps per second; None if the window is too short, or the program began anew."""
        return None if self.last.at - self.first.at < _LEAST_SECONDS else pace_of((self.first, self.last))

    def waits(self) -> float | None:
        """The part of the window in which it waited for its peers; None if it does not say."""
        return waits((self.first, self.last))


@dataclass(slots=True)
class _Gang:
    attempt: int
    since: float
    tasks: dict[str, _Track] = field(default_factory=dict)


class Paces:
    """The paces of the gangs that report steps; of more than 2,000 the oldest are forgotten."""

    def __init__(self) -> None:
        self._gangs: dict[str, _Gang] = {}

    def reported(self, job: str, attempt: int, task: str, node: str, said: Progress) -> Iterator[SlowTask]:
        """Take a report of a task's steps; at the end of a window, give the tasks that were slow."""
        at = said.at
        gang = self._gangs.get(job)
        if gang is None or gang.attempt != attempt:
            self._gangs.pop(job, None)
            if len(self._gangs) >= _MOST_GANGS:
                del self._gangs[next(iter(self._gangs))]
            gang = self._gangs[job] = _Gang(attempt, at)
        track = gang.tasks.get(task)
        if track is None or track.node != node:
            if len(gang.tasks) < _MOST_TASKS:
                gang.tasks[task] = track = _Track(node, said, said)
        elif at > track.last.at:
            track.last = said
        if task in gang.tasks:
            gang.tasks[task].take(said)
        if at - gang.since >= _WINDOW_SECONDS:
            yield from _slow(job, gang)
            gang.since = at
            for each in gang.tasks.values():
                each.first = each.last

    def scores(self, job: str, attempt: int) -> RankScores:
        """How fast the tasks of a job's attempt are now, beside each other."""
        gang = self._gangs.get(job)
        if gang is None or gang.attempt != attempt:
            return RankScores()
        return ranked({task: (track.node, track.recent) for task, track in gang.tasks.items() if track.recent})

    def forget(self, job: str) -> None:
        """Forget a job that is over."""
        self._gangs.pop(job, None)


def _slow(job: str, gang: _Gang) -> Iterator[SlowTask]:
    real = {task: pace for task, track in gang.tasks.items() if (pace := track.pace()) is not None}
    own = own_paces(real, {task: part for task in real if (part := gang.tasks[task].waits()) is not None})
    for task, pace in own.items() if len(own) > 1 else ():
        score = score_of(own, task)
        if score is not None and score < 1 - SLOWER:
            yield SlowTask(job, gang.tasks[task].node, task, pace, peers_of(own, task), own != real)
