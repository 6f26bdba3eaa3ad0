"""By how much jobs start earlier or later under the candidate."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest
from typing import Final, NamedTuple

from corral.kernel.ids import JobId
from corral.model.policy_shadow import Moved

MOST_MOVED: Final = 10
"""Jobs that gain, and that lose, at most named."""
_TRIMMED_AT: Final = 1000


class Started(NamedTuple):
    """The first start of a job under one of both; `at` is in seconds since 1970."""

    at: float
    name: str
    user: str
    queue: str


class Starts:
    """Pairs the first starts of jobs; it keeps those that one of both has made, and the largest differences."""

    def __init__(self, within: float) -> None:
        """Differences of up to `within` seconds count as none."""
        self._within = within
        self._alone: tuple[dict[JobId, Started], dict[JobId, Started]] = {}, {}
        self._ended: tuple[dict[JobId, float], dict[JobId, float]] = {}, {}
        """When a job was over that had not started."""
        self._paired: set[JobId] = set()
        self._gains: list[Moved] = []
        self._losses: list[Moved] = []
        self.earlier = self.later = self.same = 0

    def leave_out(self, jobs: Iterable[JobId]) -> None:
        """Count no start of these jobs, as they have started before."""
        self._paired.update(jobs)

    def add(self, job: JobId, started: Started, *, candidate: bool) -> None:
        """Take a start of a job; later ones of the same job are left out."""
        if job in self._paired or job in self._alone[candidate]:
            return
        self._ended[candidate].pop(job, None)  # it was tried again
        other = self._alone[not candidate].pop(job, None)
        if other is None:
            self._alone[candidate][job] = started
            return
        self._paired.add(job)
        seconds = other.at - started.at if candidate else started.at - other.at
        self._count(job, started, seconds, complete=True)

    def end(self, job: JobId, at: float, *, candidate: bool) -> None:
        """Take the end of a job under one of both; it matters if the job has not started there."""
        if job not in self._paired and job not in self._alone[candidate]:
            self._ended[candidate][job] = at

    def forget(self, jobs: Iterable[JobId], at: float) -> None:
        """Count jobs that are over under both as `close` does, and drop them."""
        jobs = set(jobs)
        for candidate in (False, True):
            for job in jobs & self._alone[candidate].keys():
                self._close(job, self._alone[candidate].pop(job), at, candidate=candidate)
        for ended in self._ended:
            for job in jobs & ended.keys():
                del ended[job]
        self._paired -= jobs

    def close(self, at: float) -> None:
        """Count the jobs that have started under one of both only, as if the other started them now.

        Where the other had the job end before, without a start, it counts as started then.
        """
        for candidate in (False, True):
            for job, started in self._alone[candidate].items():
                self._close(job, started, at, candidate=candidate)
            self._paired.update(self._alone[candidate])
            self._alone[candidate].clear()
        for ended in self._ended:
            ended.clear()

    @property
    def gains(self) -> tuple[Moved, ...]:
        """The jobs that start earliest in comparison."""
        return tuple(nlargest(MOST_MOVED, self._gains, key=lambda moved: moved.seconds))

    @property
    def losses(self) -> tuple[Moved, ...]:
        """The jobs that start latest in comparison."""
        return tuple(nlargest(MOST_MOVED, self._losses, key=lambda moved: -moved.seconds))

    def _close(self, job: JobId, started: Started, at: float, *, candidate: bool) -> None:
        seconds = max(0.0, self._ended[not candidate].get(job, at) - started.at)
        self._count(job, started, seconds if candidate else -seconds, complete=False)

    def _count(self, job: JobId, started: Started, seconds: float, *, complete: bool) -> None:
        if abs(seconds) <= self._within:
            self.same += 1
            return
        moved = Moved(job, started.name, started.user, started.queue, seconds, complete)
        if seconds > 0:
            self.earlier += 1
            self._gains.append(moved)
        else:
            self.later += 1
            self._losses.append(moved)
        if len(self._gains) + len(self._losses) > _TRIMMED_AT:
            self._gains[:], self._losses[:] = self.gains, self.losses
