"""A limit on the refusals that one caller writes into the audit log."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

A_MINUTE: Final = 60
"""Most refusals of one caller that the audit log takes in a minute; the next line counts the others."""
_WINDOW: Final = 60.0
_REMEMBERED: Final = 10_000


class Refusals:
    """Counts the refusals of each caller, for at most 10,000 callers."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def left(self, caller: str, now: float) -> dict[str, int] | None:
        """None if this refusal is not to be written; else details for its line, with the number of unwritten ones."""
        begun, count = self._seen.pop(caller, (now, 0))
        unwritten = 0
        if not 0 <= now - begun < _WINDOW:
            begun, count, unwritten = now, 0, max(0, count - A_MINUTE)
        self._seen[caller] = (begun, count + 1)
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        if count >= A_MINUTE:
            return None
        return {"unwritten": unwritten} if unwritten else {}
