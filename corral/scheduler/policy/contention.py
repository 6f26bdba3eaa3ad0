"""How many jobs shared the machines over the past: what a job's fair finish time is measured against."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

_MOST_STEPS: Final = 2048
"""Changes of the number of jobs that are kept apart; then every second one of the older half is dropped."""


class Contention:
    """The number of jobs in the system as a step function of time; `note` adds to it, at times that never decrease.

    It is noted at each plan and begins anew when the server starts. Times are in seconds since 1970.
    """

    def __init__(self) -> None:
        self._times: list[float] = []
        self._sums: list[float] = []
        """The job-seconds from the first time until each time."""
        self._count = 0

    def note(self, count: int, now: float) -> None:
        """Record that there are so many jobs from `now` on; an earlier time than the last one changes nothing."""
        if not self._times:
            self._times, self._sums, self._count = [now], [0.0], count
        elif now >= self._times[-1] and count != self._count:
            self._add(now)
            self._count = count

    def mean(self, since: float, now: float) -> float:
        """Return the mean number of jobs from `since` to `now`, as far as it is known; 0 before the first note.

        O(log steps).
        """
        if not self._times:
            return 0.0
        since = max(since, self._times[0])
        if now <= since:
            return float(self._count)
        return (self._until(now) - self._until(since)) / (now - since)

    def remembered(self) -> tuple[tuple[float, ...], tuple[float, ...], int]:
        """Return what `recall` takes over."""
        return tuple(self._times), tuple(self._sums), self._count

    def recall(self, known: tuple[tuple[float, ...], tuple[float, ...], int]) -> None:
        """Take over what `remembered` told of."""
        self._times, self._sums, self._count = list(known[0]), list(known[1]), known[2]

    def copy(self) -> Contention:
        """Return an independent copy."""
        twin = Contention()
        twin._times, twin._sums, twin._count = self._times[:], self._sums[:], self._count
        return twin

    def _until(self, at: float) -> float:
        place = bisect_right(self._times, at) - 1
        if place == len(self._times) - 1:
            return self._sums[-1] + self._count * (at - self._times[-1])
        (first, second), (low, high) = self._times[place : place + 2], self._sums[place : place + 2]
        return low + (high - low) * (at - first) / (second - first)

    def _add(self, now: float) -> None:
        total = self._until(now)
        if now == self._times[-1]:
            return
        self._times.append(now)
        self._sums.append(total)
        if len(self._times) > _MOST_STEPS:
            half = _MOST_STEPS // 2
            self._times = self._times[:half:2] + self._times[half:]
            self._sums = self._sums[:half:2] + self._sums[half:]
