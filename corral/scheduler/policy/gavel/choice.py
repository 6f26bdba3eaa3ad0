"""Which job gets which model now: the greedy choice of Gavel's rounds (Narayanan et al., OSDI 2020, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import merge
from math import inf
from typing import Final, NamedTuple

from corral.kernel.ids import JobId
from corral.scheduler.policy.gavel.demand import Demand

Rank = tuple[float, float, float]
"""Priority descending, then the service received, then the slower model last; the lowest comes first."""
Pair = tuple[Rank, int, int]
"""A rank, the position of a job among the demands, and that of a model."""
_MARGIN_SECONDS: Final = 1.0
"""By how much earlier a pair is taken to be overtaken than computed: far more than what rounding may cost."""


class Running(NamedTuple):
    """A job of which what it received grows with time."""

    number: int
    """Its position among the demands."""
    model: int
    """The position of the model whose time it receives; -1: it is counted for none."""
    since: float
    """From when on time is to be added to what its demand says, in seconds since 1970."""
    leased_until: float
    """Until when it keeps its devices, whatever is chosen; infinite if it must not be preempted."""


class Choice:
    """Chooses among the same jobs with the same fractions at one time after another.

    `fractions` are the fractions of time that each job should have on each model, and `room` the devices of each. Pairs
    of job and model are taken by priority: the fraction over the seconds that the job has had on that model already. Jobs
    that stay keep their model. A job with a fraction of 0 runs where room is left, the one that received least first.
    The pairs of jobs that wait are sorted once: O(n m log(n m)) for n jobs on m models.
    """

    def __init__(
        self,
        found: Sequence[Demand],
        fractions: Sequence[Sequence[float]],
        room: Sequence[int],
        round_seconds: float,
        running: Sequence[Running] = (),
    ) -> None:
        """`running` are the jobs whose demands are not up to date at each time that is asked about."""
        self._found = found
        self._fractions = fractions
        self._room = room
        self._round_seconds = round_seconds
        self._running = running
        self.until = -inf
        """Until when the latest answer holds, in seconds since 1970; as all pairs that were refused stay behind those
        that were chosen before them, of the same job or model."""
        self._least = min((each.devices for each in found), default=1)
        """The fewest devices that any of the jobs takes."""
        self._speeds = [[(at, -speed) for at, speed in enumerate(each.speeds) if speed > 0] for each in found]
        """For each job, the models on which it can run, with its speed there below 0."""
        moving = {each.number for each in running}
        self._staying = [number for number, each in enumerate(found) if each.stays and number not in moving]
        self._pairs = sorted(
            pair
            for number, each in enumerate(found)
            if not each.stays and number not in moving
            for pair in self._of(number, each.received)
        )

    def at(self, now: float) -> Mapping[JobId, int]:
        """Return the position of the model on which each chosen job runs; jobs that are not in it do not run now."""
        found, left, chosen, until = self._found, list(self._room), dict[JobId, int](), inf
        staying, moving, by_number = self._staying, list[Pair](), dict[int, Running]()
        if self._running:
            staying = list(staying)
            for each in self._running:
                if now < each.leased_until:
                    staying.append(each.number)
                    until = min(until, each.leased_until)
                else:
                    moving += self._of(each.number, self._received(each, now))
                    if each.model >= 0:
                        by_number[each.number] = each
            moving.sort()
        for number in staying:
            demand = found[number]
            if demand.on >= 0:
                chosen[demand.job] = demand.on
                left[demand.on] -= demand.devices
        least = self._least
        open_models = sum(count >= least for count in left)
        taken: dict[int, Pair] = {}
        """The pairs of running jobs that were chosen, by job."""
        unpassed: list[list[Pair]] = [[] for _ in left]
        """Those of each model after which none was refused there."""
        passing = 0
        for pair in merge(self._pairs, moving):
            if not (open_models or passing):
                break
            rank, number, at = pair
            demand = found[number]
            if demand.devices > left[at]:
                for before in unpassed[at]:
                    until = min(until, self._precedes_until(by_number[before[1]], before, rank))
                passing -= len(unpassed[at])
                unpassed[at].clear()
            elif demand.job not in chosen:
                chosen[demand.job] = at
                left[at] -= demand.devices
                open_models -= left[at] < least
                if number in by_number:
                    taken[number] = pair
                    unpassed[at].append(pair)
                    passing += 1
            elif number in taken:
                until = min(until, self._precedes_until(by_number[number], taken[number], rank, same=True))
        self.until = max(now, until)
        return chosen

    def _precedes_until(self, running: Running, pair: Pair, rank: Rank, *, same: bool = False) -> float:
        """Return until when a chosen pair of a running job certainly comes before a rank, which it does now.

        Time only lowers the priority of a pair, as long as nothing happens, and only adds to the service received. So
        whatever has the rank now does not come earlier later. `same` says that the rank is of a pair of the same job.
        """
        (mine, _, _), number, at = pair
        demand, other = self._found[number], -rank[0]
        if at == running.model and mine < 0:
            if other <= 0:
                return inf
            seconds = self._fractions[number][at] / other - demand.received[at] - self._round_seconds / 2
        elif same or -mine > other:
            return inf
        else:
            seconds = rank[1] / demand.devices - sum(demand.received)
        return running.since + seconds - _MARGIN_SECONDS

    def _received(self, running: Running, now: float) -> Sequence[float]:
        """Return the seconds that a running job held devices of each model, until `now`."""
        before = self._found[running.number].received
        if running.model < 0 or now <= running.since:
            return before
        received = list(before)
        received[running.model] += now - running.since
        return received

    def _of(self, number: int, received: Sequence[float]) -> list[Pair]:
        """Return the pairs of a job with the models on which it can run."""
        each, fractions, half = self._found[number], self._fractions[number], self._round_seconds / 2
        service = sum(received) * each.devices
        found = []
        for at, slow in self._speeds[number]:
            fraction = fractions[at]
            priority = fraction / (received[at] + half) if fraction > 1e-6 else 0.0
            found.append(((-priority, service, slow), number, at))
        return found


def choose(
    found: Sequence[Demand], fractions: Sequence[Sequence[float]], room: Sequence[int], round_seconds: float
) -> Mapping[JobId, int]:
    """Return the choice among demands that are up to date."""
    return Choice(found, fractions, room, round_seconds).at(0.0)
