"""A short history of series in memory, bounded in time and points."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from corral.model.alerts.matchers import Matcher
from corral.monitor.rules.series import Labels, Point, Series, selected

MOST_POINTS: Final = 200_000
"""The most points that are kept, of some 40 bytes each; beyond it the oldest go first."""


class MemorySeries:
    """Values that were all read at the same times; what is not read again ends at once. Times in seconds since 1970."""

    def __init__(self, keep: float, most: int = MOST_POINTS) -> None:
        """Keep points for `keep` seconds, and at most `most` of them."""
        self._keep = keep
        self._most = most
        self._series: dict[Labels, tuple[list[float], list[float | None]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def fill(self, series: Labels, points: Iterable[Point]) -> None:
        """Give a series that has no point yet its past, in the order of time."""
        if series in self._series:
            return
        times, values = self._series.setdefault(series, ([], []))
        for at, value in points:
            self._append(times, values, at, value)
        if not times:
            del self._series[series]

    def __contains__(self, series: Labels) -> bool:
        return series in self._series

    def add(self, values: Mapping[Labels, float], at: float) -> None:
        """Add all values of one time. One that is not after the last time is dropped: the clock went back."""
        for labels, (times, points) in self._series.items():
            if labels not in values and points[-1] is not None and at > times[-1]:
                self._append(times, points, at, None)
        for labels, value in values.items():
            times, points = self._series.setdefault(labels, ([], []))
            if not times or at > times[-1]:
                self._append(times, points, at, value)
        self._forget(at - self._keep)
        while self._count > self._most:
            oldest = min(times[0] for times, _ in self._series.values())
            self._forget(oldest + max(1.0, (at - oldest) / 8))

    def select(self, matchers: tuple[Matcher, ...], begin: float, end: float) -> Iterable[Series]:
        """All series that meet the conditions, with their points from `begin` to `end`, both included."""
        return list(self._selected(matchers, begin, end))

    def _selected(self, matchers: tuple[Matcher, ...], begin: float, end: float) -> Iterator[Series]:
        for labels, (times, points) in self._series.items():
            if selected(labels, matchers):
                first, last = bisect_left(times, begin), bisect_right(times, end)
                if first < last:
                    yield Series(labels, tuple(zip(times[first:last], points[first:last], strict=True)))

    def _append(self, times: list[float], points: list[float | None], at: float, value: float | None) -> None:
        times.append(at)
        points.append(value)
        self._count += 1

    def _forget(self, before: float) -> None:
        for labels, (times, points) in list(self._series.items()):
            if times[0] < before:
                gone = bisect_left(times, before)
                del times[:gone], points[:gone]
                self._count -= gone
            if not times or points == [None]:
                self._count -= len(times)
                del self._series[labels]
