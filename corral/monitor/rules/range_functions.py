"""Functions over the points of a range: rates of counters, and statistics over time.

Arithmetic and extrapolation are those of Prometheus 2.42 (promql/functions.go, extrapolatedRate).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import fsum, inf, isinf, isnan, nan
from typing import Final, NamedTuple

_THRESHOLD: Final = 1.1
"""Multiple of the mean distance of points up to which a rate is extrapolated to the edge of the range."""


class Window(NamedTuple):
    """The points of one series in a range, the first and last second of which are `begin` and `end`."""

    times: Sequence[float]
    values: Sequence[float]
    begin: float
    end: float


def over_range(function: str, window: Window) -> float | None:
    """The value of a function; None where it has none for so few points. The window has at least one point."""
    return _FUNCTIONS[function](window)


def _extrapolated(window: Window, *, counter: bool, rate: bool) -> float | None:
    times, values, begin, end = window
    if len(values) < 2:
        return None
    change = values[-1] - values[0]
    if counter:
        change += sum(before for before, after in pairwise(values) if after < before)
    to_start, to_end, sampled = _apart(begin, times[0]), _apart(times[-1], end), _apart(times[0], times[-1])
    distance = sampled / (len(values) - 1)
    if counter and change > 0 and values[0] >= 0:
        # A counter begins at 0 and is never below it.
        to_start = min(to_start, sampled * (values[0] / change))
    threshold = distance * _THRESHOLD
    extent = sampled
    extent += to_start if to_start < threshold else distance / 2
    extent += to_end if to_end < threshold else distance / 2
    factor = extent / sampled
    return change * (factor / _apart(begin, end) if rate else factor)


def _instant(window: Window, *, rate: bool) -> float | None:
    times, values = window.times, window.values
    if len(values) < 2 or times[-1] == times[-2]:
        return None
    change = values[-1] if rate and values[-1] < values[-2] else values[-1] - values[-2]
    return change / _apart(times[-2], times[-1]) if rate else change


def _apart(first: float, last: float) -> float:
    """Seconds between two times in whole milliseconds, as Prometheus counts them; floats of today are coarser."""
    return round(last - first, 3)


def _changes(window: Window) -> float:
    return float(sum(a != b and not (isnan(a) and isnan(b)) for a, b in pairwise(window.values)))


def _average(window: Window) -> float:
    return mean(window.values)


def _largest(window: Window) -> float:
    return largest(window.values)


def _smallest(window: Window) -> float:
    return smallest(window.values)


def total(values: Sequence[float]) -> float:
    """The sum, which is exact; infinities of both signs make it undefined."""
    if any(isinf(value) or isnan(value) for value in values):
        return sum(values)
    try:
        return fsum(values)
    except OverflowError:
        return sum(values)


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean."""
    return total(values) / len(values)


def largest(values: Sequence[float]) -> float:
    """The largest value; undefined ones count only where all are."""
    return max((value for value in values if not isnan(value)), default=nan)


def smallest(values: Sequence[float]) -> float:
    """The smallest value; undefined ones count only where all are."""
    return min((value for value in values if not isnan(value)), default=nan)


_FUNCTIONS: Final[dict[str, Callable[[Window], float | None]]] = {
    "rate": lambda window: _extrapolated(window, counter=True, rate=True),
    "increase": lambda window: _extrapolated(window, counter=True, rate=False),
    "delta": lambda window: _extrapolated(window, counter=False, rate=False),
    "irate": lambda window: _instant(window, rate=True),
    "idelta": lambda window: _instant(window, rate=False),
    "changes": _changes,
    "resets": lambda window: float(sum(after < before for before, after in pairwise(window.values))),
    "avg_over_time": _average,
    "max_over_time": _largest,
    "min_over_time": _smallest,
    "sum_over_time": lambda window: total(window.values),
    "count_over_time": lambda window: float(len(window.values)),
    "last_over_time": lambda window: window.values[-1],
}


def bucket_quantile(quantile: float, buckets: Sequence[tuple[float, float]]) -> float:
    """A quantile of (upper bound, cumulative count) pairs, linear within a bucket (promql/quantile.go)."""
    if isnan(quantile):
        return nan
    if not 0 <= quantile <= 1:
        return -inf if quantile < 0 else inf
    joined: dict[float, float] = {}
    for bound, count in sorted(buckets):
        joined[bound] = joined.get(bound, 0.0) + count
    bounds, counts, most = list(joined), list(joined.values()), -inf
    if not bounds or bounds[-1] != inf:
        return nan
    for place, count in enumerate(counts):
        most = counts[place] = max(most, count)
    if len(bounds) < 2 or counts[-1] == 0:
        return nan
    rank = quantile * counts[-1]
    place = next((i for i, count in enumerate(counts[:-1]) if count >= rank), len(counts) - 1)
    if place == len(counts) - 1:
        return bounds[-2]
    if place == 0 and bounds[0] <= 0:
        return bounds[0]
    start, below = (bounds[place - 1], counts[place - 1]) if place else (0.0, 0.0)
    within = counts[place] - below
    return start + (bounds[place] - start) * ((rank - below) / within) if within else nan
