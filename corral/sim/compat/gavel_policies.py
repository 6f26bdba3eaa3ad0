"""Gavel's policies over several types of GPU (Narayanan et al., OSDI 2020), with the anchor's bug in FIFO.

A policy that knows speeds by type is *heterogeneity-aware*; an agnostic one uses one speed for all types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from corral.sim.compat.interior_point import fairest
from corral.sim.compat.rounds import RoundJob

Floats = NDArray[np.float64]

MAKESPAN_RANGE = (100.0, 1e6)
"""Seconds between which the makespan is bisected, to 5 %."""
FTF_PRECISION = 1e-6
"""Relative precision of the smallest ratio of finish times."""


class _Aware:
    """What all policies here have in common."""

    skips_zero = False

    def __init__(self, types: Sequence[int], *, aware: bool) -> None:
        self.capacity = np.array(types, dtype=np.float64)
        self.aware = aware

    @property
    def shuffles_types(self) -> bool:
        """Return whether rounds fill the types in random order, as they do for agnostic policies."""
        return not self.aware

    def _speeds(self, jobs: Sequence[RoundJob]) -> Floats:
        """Return the steps a second by job and type; those of the first type on all, if agnostic."""
        speeds = np.array([job.throughput for job in jobs])
        return speeds if self.aware else speeds[:, :1].repeat(len(self.capacity), axis=1)

    @staticmethod
    def _by_number(jobs: Sequence[RoundJob], x: Floats) -> dict[int, list[float]]:
        return {job.number: row for job, row in zip(jobs, x.tolist(), strict=True)}


class MaxMin(_Aware):
    """The smallest normalised throughput, over the weight, is largest; agnostic it is LAS. One linear program."""

    def fractions(self, jobs: Sequence[RoundJob], now: float) -> Mapping[int, Sequence[float]]:
        """Return the fraction of time of each job on each type."""
        gpus = _gpus(jobs)
        speeds = self._speeds(jobs) if self.aware else np.ones((len(jobs), len(self.capacity)))
        equal = speeds @ (self.capacity / self.capacity.sum())
        weights = np.array([job.weight for job in jobs])
        x, _ = fairest(speeds * (gpus / equal / weights)[:, None], gpus, self.capacity)
        return self._by_number(jobs, x)


class FinishTimeFairness(_Aware):
    """The largest ratio of a job's finish time to that on an equal share of each type is smallest (Themis' measure).

    The time on an equal share accumulates: steps done since the last allocation over the speed on the share of then.
    About ten linear programs.
    """

    def __init__(self, types: Sequence[int], *, aware: bool) -> None:
        super().__init__(types, aware=aware)
        self.shared_so_far: dict[int, float] = {}
        self.before: dict[int, tuple[float, float]] = {}

    def fractions(self, jobs: Sequence[RoundJob], now: float) -> Mapping[int, Sequence[float]]:
        """Return the fraction of time of each job on each type."""
        gpus, speeds = _gpus(jobs), self._speeds(jobs)
        share = self.capacity[None, :] / (len(jobs) * gpus[:, None])
        share = share / np.maximum(share.sum(axis=1, keepdims=True), 1.0)
        shared = (speeds * share).sum(axis=1)
        remaining = np.array([float(job.remaining) for job in jobs])
        alone = self._accumulate(jobs, remaining, shared) + remaining / shared
        age = np.array([now - job.arrival for job in jobs])

        def needed(ratio: float) -> Floats:
            rate: Floats = remaining / (ratio * alone - age)
            return rate

        low = float(((age + remaining / speeds.max(axis=1)) / alone).max())
        x, t = fairest(speeds / needed(low)[:, None], gpus, self.capacity)
        high = low
        while t < 1 - FTF_PRECISION:
            low, high = high, high * 2
            x, t = fairest(speeds / needed(high)[:, None], gpus, self.capacity)
        while high - low > FTF_PRECISION * high:
            middle = (low + high) / 2
            found, t = fairest(speeds / needed(middle)[:, None], gpus, self.capacity)
            if t >= 1:
                high, x = middle, found
            else:
                low = middle
        return self._by_number(jobs, x)

    def _accumulate(self, jobs: Sequence[RoundJob], remaining: Floats, shared: Floats) -> Floats:
        so_far = []
        for job, left, speed in zip(jobs, remaining.tolist(), shared.tolist(), strict=True):
            total = self.shared_so_far.get(job.number, 0.0)
            if job.number in self.before:
                then, rate = self.before[job.number]
                total += (then - left) / rate
            self.shared_so_far[job.number] = total
            self.before[job.number] = (left, speed)
            so_far.append(total)
        return np.array(so_far)


class ShortestMakespan(_Aware):
    """All jobs end by the earliest possible time, bisected to 5 %; among the fractions that do, the analytic centre."""

    def fractions(self, jobs: Sequence[RoundJob], now: float) -> Mapping[int, Sequence[float]]:
        """Return the fraction of time of each job on each type."""
        gpus = _gpus(jobs)
        rates = self._speeds(jobs) / np.array([max(float(job.remaining), 1e-9) for job in jobs])[:, None]
        unit = float(rates.max())
        _, t = fairest(rates / unit, gpus, self.capacity)
        x, _ = fairest(rates * earliest(1 / (t * unit)), gpus, self.capacity, goal=1.0)
        return self._by_number(jobs, x)


def earliest(shortest: float) -> float:
    """Return the makespan at which the anchor's bisection ends when `shortest` is the shortest possible one."""
    low, high = MAKESPAN_RANGE
    found = None
    while found is None:
        while 1.05 * low < high:
            middle = (low + high) / 2
            if middle > shortest:
                found = high = middle
            else:
                low = middle
        low, high = (MAKESPAN_RANGE[0] * 10, high * 10) if found is None else (low, high)
    return found


class Fifo:
    """First in, first out without preemption, with the anchor's bug.

    The type of a queued job is the last in alphabetical order of those that are left, whatever the draw says and whether it
    has room. When the count of the chosen type becomes 0, the type that was drawn is struck from the list. A type whose
    count falls below 0 takes all jobs that come, which then wait.
    """

    shuffles_types = True
    skips_zero = True

    def __init__(self, types: Mapping[str, int], order: Sequence[str], seed: int) -> None:
        self.types = dict(types)
        self.order = tuple(order)
        self.draw = Random(seed)
        self.placed: dict[int, tuple[str, int]] = {}

    def fractions(self, jobs: Sequence[RoundJob], now: float) -> Mapping[int, Sequence[float]]:
        """Return a fraction of 1 on one type for jobs that have been placed, and 0 otherwise."""
        live = {job.number: job for job in jobs}
        queue = [live[number] for number in sorted(live) if number not in self.placed]
        free = dict(self.types)
        queue = self._replace(queue, live, free)
        self._place(queue, free)
        return {
            number: [1.0 if self.placed.get(number, ("", 0))[0] == kind else 0.0 for kind in self.order]
            for number in live
        }

    def _replace(self, queue: list[RoundJob], live: Mapping[int, RoundJob], free: dict[str, int]) -> list[RoundJob]:
        """Let the head of the queue inherit the type of each job that left; count the GPUs of the others."""
        for number in sorted(self.placed):
            kind, gpus = self.placed[number]
            if number in live:
                free[kind] -= gpus
                continue
            head = queue[0] if queue else None
            if head is not None and head.gpus <= free[kind] and head.throughput[self.order.index(kind)] > 0:
                self.placed[head.number] = (kind, head.gpus)
                free[kind] -= head.gpus
                queue = queue[1:]
            del self.placed[number]
        return queue

    def _place(self, queue: Sequence[RoundJob], free: dict[str, int]) -> None:
        names = sorted(name for name, count in free.items() if count > 0)
        for job in queue:
            fitting = [name for name in names if free[name] >= job.gpus]
            if not fitting:
                break
            drawn = fitting[self.draw.randrange(len(fitting))]
            kind = names[-1]
            if job.throughput[self.order.index(kind)] <= 0:
                continue
            self.placed[job.number] = (kind, job.gpus)
            free[kind] -= job.gpus
            if free[kind] == 0:
                names.remove(drawn)


def _gpus(jobs: Sequence[RoundJob]) -> Floats:
    return np.array([float(job.gpus) for job in jobs])
