"""The round mechanism that the simulators of Gavel (OSDI 2020) and Shockwave (NSDI 2023) share, for tables B and C.

A policy gives each job a fraction of time on each type of GPU. A round serves the jobs with the largest ratio of fraction
to time received. Time is in seconds. simulators.md, section 1, has the rules and their oddities, all of which are kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import floor, inf
from random import Random
from typing import Protocol

MOST_FAILURES = 5
"""Empty rounds after which a job leaves."""


class RoundJob:
    """One job: what it needs, what it has done, and its accounts per type of GPU."""

    __slots__ = (
        "arrival", "deficit", "done", "failures", "fraction", "gpus", "number", "payload", "ran_before", "received",
        "throughput", "total", "weight",
    )  # fmt: skip

    def __init__(
        self, number: int, arrival: float, gpus: int, total: float, throughput: Sequence[float], payload: object = None
    ) -> None:
        self.number = number
        self.arrival = arrival
        self.gpus = gpus
        self.total = total
        self.throughput = list(throughput)
        self.payload = payload
        self.weight = 1.0
        self.done: float = 0
        self.failures = 0
        self.ran_before = False
        self.received = [0.0] * len(self.throughput)
        self.deficit = [0.0] * len(self.throughput)
        self.fraction: list[float] | None = None

    @property
    def remaining(self) -> float:
        """Return the steps left; negative after a change of batch size that the anchor rounds up."""
        return self.total - self.done


@dataclass(frozen=True)
class RoundRules:
    """What differs between the two simulators."""

    round_seconds: float
    reset_gap: float
    start_overhead: float = 0.0
    empty_needs_both: bool = False
    """Whether a round is empty only without steps *and* without time (Shockwave), else without either (Gavel)."""
    idle_forces_reset: bool = False
    """Whether an idle cluster allocates at once when no further job will arrive (Gavel)."""


class Policy(Protocol):
    """Gives fractions of time; a policy may keep state between two calls."""

    @property
    def shuffles_types(self) -> bool:
        """Return whether rounds fill the types of GPU in random order."""

    @property
    def skips_zero(self) -> bool:
        """Return whether jobs without a fraction stay off GPUs that are left over."""

    def fractions(self, jobs: Sequence[RoundJob], now: float) -> Mapping[int, Sequence[float]]:
        """Return, by number of the job, its fraction of time on each type of GPU."""


@dataclass
class Result:
    """What a run gives: times in seconds, from 0."""

    ends: dict[int, float] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    end: float = 0.0
    busy: list[list[float]] = field(default_factory=list)
    rounds: int = 0


@dataclass
class _Slice:
    """A job's part of one round."""

    job: RoundJob
    kind: int
    gpus: list[int]
    steps: float
    finish: float


class Rounds:
    """One simulation. `types` are the GPUs of each type, in the order in which rounds fill them."""

    def __init__(
        self,
        types: Sequence[int],
        rules: RoundRules,
        policy: Policy,
        *,
        seed: int = 0,
        after_slice: Callable[[RoundJob], None] | None = None,
        after_round: Callable[[Iterable[RoundJob]], None] | None = None,
    ) -> None:
        self.types = list(types)
        self.rules = rules
        self.policy = policy
        self.after_slice = after_slice
        self.after_round = after_round
        self.shuffler = Random(seed + 5)
        self.live: dict[int, RoundJob] = {}
        self.result = Result(busy=[[0.0] * count for count in types])
        self.last_reset = 0.0
        self.changed = False
        self.now = 0.0
        self.running: list[_Slice] = []
        self.round_start = 0.0
        self.round_end: float | None = None
        self.ran_last: set[int] = set()
        self.entitled: list[list[RoundJob]] = []
        self.leftover: list[list[RoundJob]] = []
        self.stale = True

    def run(self, arrivals: Sequence[RoundJob], watched: frozenset[int] | None = None) -> Result:
        """Play the jobs, in order of arrival, until all `watched` ones (all, if None) have left."""
        waiting = list(reversed(arrivals))
        left = set(watched) if watched is not None else {job.number for job in arrivals}
        while True:
            self._advance(waiting[-1].arrival if waiting else inf)
            left -= self._account()
            if self.after_round is not None and self.result.rounds:
                self.after_round(self.live.values())
            if not left:
                break
            while waiting and waiting[-1].arrival <= self.now:
                self._add(waiting.pop())
            self._reset()
            self._start_round()
        self.result.end = self.now
        return self.result

    def _advance(self, next_arrival: float) -> None:
        if self.running:
            self.now = max(each.finish for each in self.running)
            self.round_start = 0.0 if self.round_end is None else self.round_end
            self.round_end = self.now
            return
        if next_arrival < inf:
            self.now = max(self.now, next_arrival)
        elif self.rules.idle_forces_reset and self.last_reset != 0:
            self.last_reset = 0.0
        else:
            raise ValueError("No job runs and none arrives: a job fits nowhere.")

    def _add(self, job: RoundJob) -> None:
        job.received = [self.rules.round_seconds / 2] * len(self.types)
        job.deficit = [0.0] * len(self.types)
        self.live[job.number] = job
        self.changed = self.stale = True

    def _account(self) -> set[int]:
        """Credit the slices of the round, latest finish first; return the jobs that left."""
        gone = set()
        order = [(-each.finish, each.job.number, each) for each in self.running]
        heapq.heapify(order)
        while order:
            _, _, each = heapq.heappop(order)
            if self._credit(each):
                gone.add(each.job.number)
                del self.live[each.job.number]
                self.changed = True
        self.ran_last = {each.job.number for each in self.running}
        self.running = []
        return gone

    def _credit(self, each: _Slice) -> bool:
        job, steps, seconds = each.job, each.steps, each.finish - self.round_start
        overhead = self.rules.start_overhead
        if overhead and self.result.rounds > 1 and not job.ran_before and seconds > self.rules.round_seconds - 5:
            steps = int(steps * (seconds - overhead) / seconds)
            seconds -= overhead
        least = steps if job.gpus == 1 else min(steps // job.gpus, steps - (job.gpus - 1) * (steps // job.gpus))
        empty = (least <= 0 and seconds <= 0) if self.rules.empty_needs_both else (least <= 0 or seconds <= 0)
        if empty:
            job.failures += 1
            if job.failures < MOST_FAILURES:
                return False
            self.result.failed.add(job.number)
            self.result.ends[job.number] = each.finish
            return True
        job.failures = 0
        job.done += steps
        job.received[each.kind] += seconds
        for gpu in each.gpus:
            self.result.busy[each.kind][gpu] += seconds
        if job.remaining <= 0:
            self.result.ends[job.number] = each.finish
            return True
        if self.after_slice is not None:
            self.after_slice(job)
        return False

    def _reset(self) -> None:
        since = self.now - self.last_reset
        if not self.changed or (since < self.rules.reset_gap and self.last_reset != 0):
            return
        half = self.rules.round_seconds / 2
        for job in self.live.values():
            for kind in range(len(self.types)):
                due = job.fraction[kind] * since if job.fraction is not None else 0.0
                job.deficit[kind] += due - (job.received[kind] - half)
                job.received[kind] = half
        self.last_reset = self.now
        self.changed, self.stale = False, True
        found = self.policy.fractions(list(self.live.values()), self.now) if self.live else {}
        for job in self.live.values():
            given = found.get(job.number)
            job.fraction = None if given is None else [min(max(x, 0.0), 1.0) for x in given]

    def _start_round(self) -> None:
        self.result.rounds += 1
        if self.stale:
            self._sort_out()
        kinds = list(range(len(self.types)))
        if self.policy.shuffles_types:
            self.shuffler.shuffle(kinds)
        taken: set[int] = set()
        for kind in kinds:
            self._fill(kind, taken)
        for each in self.running:
            each.job.ran_before = each.job.number in self.ran_last

    def _fill(self, kind: int, taken: set[int]) -> None:
        room = self.types[kind]
        served = [job for job in self.entitled[kind] if job.number in self.live and job.number not in taken]
        # Priority, deficit and fraction, largest first; equal ones in order of arrival.
        served.sort(key=lambda job: _key(job, kind), reverse=True)
        for job in chain(served, () if self.policy.skips_zero else self.leftover[kind]):
            if not room:
                break
            if job.gpus > room or job.number in taken or job.number not in self.live:
                continue
            taken.add(job.number)
            gpus = list(range(self.types[kind] - room, self.types[kind] - room + job.gpus))
            room -= job.gpus
            if job.fraction is not None:
                speed = job.throughput[kind]
                steps = min(floor(speed * self.rules.round_seconds), job.remaining)
                self.running.append(_Slice(job, kind, gpus, steps, self.now + max(steps, 0) / speed))

    def _sort_out(self) -> None:
        """Divide the jobs by type into those with a fraction and the others, which get what is left over."""
        self.entitled, self.leftover = [], []
        for kind in range(len(self.types)):
            able = [job for job in self.live.values() if job.throughput[kind] > 0]
            given = [job.fraction is not None and job.fraction[kind] > 0 for job in able]
            self.entitled.append([job for job, some in zip(able, given, strict=True) if some])
            rest = [job for job, some in zip(able, given, strict=True) if not some]
            self.leftover.append(sorted(rest, key=lambda job: job.deficit[kind], reverse=True))
        self.stale = False


def _key(job: RoundJob, kind: int) -> tuple[float, float, float]:
    assert job.fraction is not None
    given = job.fraction[kind]
    return (given / job.received[kind], job.deficit[kind], given)
