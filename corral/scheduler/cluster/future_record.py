"""What happened to the holdings of later times: whether what is held at a time to come is still what it was."""

from __future__ import annotations

from collections.abc import Collection
from math import inf

_MOST = 1024
Place = tuple[str, int]
"""An engine and a node position."""


class FutureRecord:
    """For each placement and release, the time from which on it left all holdings as they were expected before.

    Expected is that running gangs end at their bounds, and not earlier.
    """

    def __init__(self) -> None:
        self.count = 0
        """Counts all entries that there ever were."""
        self.early = 0
        """Counts the releases that came earlier than expected, after which more is free than expected."""
        self._entries: list[tuple[float, Collection[Place] | None]] = []
        """From when on nothing is changed, and where something is until then; None: anywhere."""

    def note(self, unchanged_from: float, places: Collection[Place] | None = None) -> None:
        """Add an entry; inf for one that changed all times to come, -inf for one that changed none.

        Of a placement, `places` are all nodes with its tasks.
        """
        self._entries.append((unchanged_from, places))
        self.count += 1
        if len(self._entries) > 2 * _MOST:
            del self._entries[:_MOST]

    def note_early(self) -> None:
        """Add a release that was not expected at its time."""
        self.early += 1
        self.note(inf)

    def unchanged_from(self, count: int) -> float:
        """Return from when on holdings are what they were expected to be when `count` was the count; inf: never."""
        new = self.count - count
        if not new:
            return -inf
        kept = self._entries
        return max([time for time, _ in kept[len(kept) - new :]]) if new <= len(kept) else inf

    def taken_beyond(self, time: float, count: int) -> set[Place] | None:
        """Return where more is held after a time than was expected when `count` was the count; None: maybe anywhere."""
        new, kept = self.count - count, self._entries
        found = set[Place]()
        for until, places in kept[len(kept) - new :] if 0 < new <= len(kept) else ():
            if until > time:
                if places is None:
                    return None
                found.update(places)
        return found if new <= len(kept) else None

    def copy(self) -> FutureRecord:
        """Return an independent copy."""
        twin = FutureRecord()
        twin.count, twin.early, twin._entries = self.count, self.early, self._entries[:]
        return twin
