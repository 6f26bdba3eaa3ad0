"""Count events and observe durations since the start of a process, with a bound on the number of series."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final

from corral.model.metrics.families import FAMILIES
from corral.model.metrics.samples import Distribution, Samples, Value

MOST_SERIES: Final = 2000
"""Series that one metric has at most; what comes after them is counted together, with `other` for each label."""
OTHER: Final = "other"


class Counts:
    """Counters and histograms."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[tuple[str, ...], float]] = {}
        self._histograms: dict[str, dict[tuple[str, ...], _Histogram]] = {}

    def add(self, family: str, *labels: str, by: float = 1.0) -> None:
        """Count an event."""
        series = self._counters.setdefault(family, {})
        labels = _bounded(series, labels)
        series[labels] = series.get(labels, 0.0) + by

    def observe(self, family: str, seconds: float, *labels: str) -> None:
        """Count a duration."""
        series = self._histograms.setdefault(family, {})
        labels = _bounded(series, labels)
        found = series.get(labels)
        if found is None:
            found = series[labels] = _Histogram(FAMILIES[family].buckets)
        found.observe(seconds)

    def samples(self) -> Samples:
        """What was counted up to now."""
        values = (
            Value(family, labels, value)
            for family, series in self._counters.items()
            for labels, value in series.items()
        )
        distributions = (
            Distribution(family, labels, tuple(each.counts), each.sum)
            for family, series in self._histograms.items()
            for labels, each in series.items()
        )
        return Samples(tuple(values), tuple(distributions))


class _Histogram:
    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


def gauges(family: str, amounts: Iterable[tuple[tuple[str, ...], float]]) -> list[Value]:
    """The series of a gauge; those beyond the bound are summed, and the first ones stay."""
    series: dict[tuple[str, ...], float] = {}
    for given, amount in amounts:
        labels = _bounded(series, given)
        series[labels] = series.get(labels, 0.0) + amount
    return [Value(family, labels, amount) for labels, amount in series.items()]


def _bounded(series: Mapping[tuple[str, ...], object], labels: tuple[str, ...]) -> tuple[str, ...]:
    return labels if len(series) < MOST_SERIES or labels in series else (OTHER,) * len(labels)
