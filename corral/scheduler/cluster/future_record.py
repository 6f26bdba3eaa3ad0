"""What happened to the holdings of later times: whether what is held at a time to come is still what it was."""

from __future__ import annotations

from math import inf

_MOST = 1024


class FutureRecord:
    """For each placement and release, the time from which on it left all holdings as they were expected before.

    Expected is that running gangs end at their bounds, and not earlier.
    """

    def __init__(self) -> None:
        self.count = 0
        """Counts all entries that there ever were."""
        self.early = 0
        """Counts the releases that came earlier than expected, after which more is free than expected."""
        self._unchanged_from: list[float] = []

    def note(self, unchanged_from: float) -> None:
        """Add an entry; inf for one that changed all times to come, -inf for one that changed none."""
        self._unchanged_from.append(unchanged_from)
        self.count += 1
        if len(self._unchanged_from) > 2 * _MOST:
            del self._unchanged_from[:_MOST]

    def note_early(self) -> None:
        """Add a release that was not expected at its time."""
        self.early += 1
        self.note(inf)

    def unchanged_from(self, count: int) -> float:
        """Return from when on holdings are what they were expected to be when `count` was the count; inf: never."""
        new = self.count - count
        if not new:
            return -inf
        kept = self._unchanged_from
        return max(kept[len(kept) - new :]) if new <= len(kept) else inf

    def copy(self) -> FutureRecord:
        """Return an independent copy."""
        twin = FutureRecord()
        twin.count, twin.early, twin._unchanged_from = self.count, self.early, self._unchanged_from[:]
        return twin
