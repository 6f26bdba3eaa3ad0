"""How long jobs are expected to run: as they say themselves, else as long as ended jobs that are like them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import inf, sqrt
from random import Random
from statistics import NormalDist
from typing import Final, TypeVar

from corral.control.core.world import Job
from corral.model.what_if import Known, PastRun

Group = TypeVar("Group")
ENOUGH: Final = 5
"""Ended jobs that make a distribution; with fewer, the next wider group is asked."""
ALIKE: Final = 0.35
"""The correlation of the run times of a queue's jobs: in the Philly trace that of jobs of one virtual cluster within 12 h.

Jobs that are there together are often one burst. Independent draws would even out, and tell of too little doubt.
"""
_BELOW_ONE: Final = 1 - 2.0**-53
_NORMAL: Final = NormalDist()
_NUMBER: Final = re.compile(r"[-_.~]*\d+$")


def stem(name: str) -> str:
    """A job's name without the numbers at its end: `train-7` and `train-12` have one stem."""
    return _NUMBER.sub("", name) or name


class RunTimes:
    """Draws run times, in seconds; equal seeds draw equal times for equal jobs, whatever else happens."""

    def __init__(self, past: Iterable[PastRun], seed: int) -> None:
        self.known = Known()
        """How the run times of the jobs asked about were known."""
        self._seed = seed
        self._counted: dict[str, str] = {}
        """By job how its run time was known."""
        self.learn(past)

    def learn(self, past: Iterable[PastRun]) -> None:
        """Draw from these ended jobs from now on."""
        alike: dict[tuple[str, str, float], list[float]] = defaultdict(list)
        by_queue: dict[str, list[float]] = defaultdict(list)
        everything: list[float] = []
        for run in past:
            for times in (alike[run.user, stem(run.name), run.devices], by_queue[run.queue], everything):
                times.append(run.seconds)
        self._alike, self._by_queue = _sorted(alike), _sorted(by_queue)
        self._all = sorted(everything)

    def uncount(self, job: str) -> None:
        """Take a job out of those whose run times were asked for, as another source has its own."""
        how = self._counted.pop(job, "")
        if how:
            setattr(self.known, how, getattr(self.known, how) - 1)

    def forget(self, jobs: Iterable[str]) -> None:
        """Drop jobs that are over; they stay counted."""
        for job in jobs:
            self._counted.pop(job, None)

    def drawn(self, job: Job, elapsed: float = 0.0) -> float:
        """How long a job's present attempt runs in all; it has run for `elapsed` already. Infinite: it runs on.

        Of a distribution, a time above `elapsed` is drawn. A job that has outlived all of it runs as long again.
        """
        if longest := job.view.max_duration_seconds:
            self._count(job.id, "own")
            return float(max(longest, elapsed))
        how, times = self._times(job)
        self._count(job.id, how)
        if not times:
            return inf
        first = bisect_right(times, elapsed)
        if first == len(times):
            return 2 * elapsed
        return times[first + int(self._chance(job) * (len(times) - first))]

    def _chance(self, job: Job) -> float:
        """Draw from 0 to below 1, evenly; a one-factor Gaussian copula makes the jobs of a queue alike."""
        of_queue = self._normal(f"queue {job.terms.queue}")
        own = self._normal(f"{job.id} {job.run.attempt}")
        return min(_NORMAL.cdf(sqrt(ALIKE) * of_queue + sqrt(1 - ALIKE) * own), _BELOW_ONE)

    def _normal(self, name: str) -> float:
        return _NORMAL.inv_cdf(max(Random(f"{self._seed} {name}").random(), 1 - _BELOW_ONE))

    def _count(self, job: str, how: str) -> None:
        if job not in self._counted:
            self._counted[job] = how
            setattr(self.known, how, getattr(self.known, how) + 1)

    def _times(self, job: Job) -> tuple[str, list[float]]:
        """The run times of the nearest group that has enough, and its name."""
        devices = job.asked_millis() / 1000
        alike = self._alike.get((job.user, stem(job.name), devices), [])
        if len(alike) >= ENOUGH:
            return "alike", alike
        of_queue = self._by_queue.get(job.terms.queue, [])
        if len(of_queue) >= ENOUGH:
            return "queue", of_queue
        return ("cluster" if self._all else "nothing"), self._all


def _sorted(groups: Mapping[Group, list[float]]) -> dict[Group, list[float]]:
    return {key: sorted(times) for key, times in groups.items()}
