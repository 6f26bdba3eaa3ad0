"""The curves of a report: how values are distributed, and what went on over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from corral.sim.results import Result

Points = Sequence[tuple[float, float]]
"""Pairs of x and y by rising x."""
Span = tuple[float, float, float]
"""Begin and end in seconds, and an amount that is there meanwhile."""
BINS: Final = 200
"""The points of a curve over time."""
_MOST_POINTS: Final = 400


def cumulative(values: Iterable[float]) -> Points:
    """Return the part of values (0 to 1) that do not exceed each of at most `_MOST_POINTS` of them."""
    ordered = sorted(values)
    last = len(ordered) - 1
    if last < 0:
        return ()
    places = sorted({round(number * last / (_MOST_POINTS - 1)) for number in range(_MOST_POINTS)})
    return [(ordered[place], (place + 1) / len(ordered)) for place in places]


def over_time(spans: Iterable[Span], until: float) -> list[float]:
    """Return the mean amount in each of `BINS` equal parts of the time from 0 to `until` seconds; O(spans + BINS)."""
    width = until / BINS
    level, part = [0.0] * (BINS + 1), [0.0] * BINS
    for begin, end, amount in spans:
        for at, change in ((begin, amount), (end, -amount)):
            number = int(at / width)
            if number < BINS:
                part[number] += change * (number + 1 - at / width)
                level[number + 1] += change
    found, total = [], 0.0
    for number in range(BINS):
        total += level[number]
        found.append(max(0.0, total + part[number]))
    return found


def mean_over_time(runs: Sequence[Iterable[Span]], until: float) -> Points:
    """Return the mean of equally weighted runs over time, by hours, each point in the middle of its part."""
    if until <= 0 or not runs:
        return ()
    totals = [0.0] * BINS
    for spans in runs:
        totals = [total + each for total, each in zip(totals, over_time(spans, until), strict=True)]
    return [((number + 0.5) * until / BINS / 3600, total / len(runs)) for number, total in enumerate(totals)]


def devices_in_use(result: Result) -> Iterable[Span]:
    """Yield the part of all devices that each run held."""
    return ((begin, end, devices / result.devices) for begin, end, devices in result.held)


def jobs_that_wait(result: Result) -> Iterable[Span]:
    """Yield each job's wait for its first start."""
    return ((job.submitted, job.started, 1.0) for job in result.jobs)
