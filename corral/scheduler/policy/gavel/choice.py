"""Which job gets which model now: the greedy choice of Gavel's rounds (Narayanan et al., OSDI 2020, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corral.kernel.ids import JobId
from corral.scheduler.policy.gavel.demand import Demand


def choose(
    found: Sequence[Demand], fractions: Sequence[Sequence[float]], room: Sequence[int], round_seconds: float
) -> Mapping[JobId, int]:
    """Return the position of the model on which each chosen job runs; jobs that are not in it do not run now.

    `fractions` are the fractions of time that each job should have on each model, and `room` the devices of each. Pairs
    of job and model are taken by priority: the fraction over the seconds that the job has had on that model already. Jobs
    that stay keep their model. A job with a fraction of 0 runs where room is left, the one that received least first.
    O(n m log(n m)).
    """
    left, chosen = list(room), dict[JobId, int]()
    for each in found:
        if each.stays and each.on >= 0:
            chosen[each.job] = each.on
            left[each.on] -= each.devices
    pairs = [
        (*_rank(each, row, at, round_seconds), number, at)
        for number, (each, row) in enumerate(zip(found, fractions, strict=True))
        if not each.stays
        for at, speed in enumerate(each.speeds)
        if speed > 0
    ]
    for *_, number, at in sorted(pairs):
        each = found[number]
        if each.job not in chosen and each.devices <= left[at]:
            chosen[each.job] = at
            left[at] -= each.devices
    return chosen


def _rank(each: Demand, fractions: Sequence[float], at: int, round_seconds: float) -> tuple[float, float, float]:
    """Return the key of a pair, lowest first: priority descending, then service received, then the slower model last."""
    fraction = fractions[at] if fractions[at] > 1e-6 else 0.0
    priority = fraction / (each.received[at] + round_seconds / 2)
    return (-priority, sum(each.received) * each.devices, -each.speeds[at])
