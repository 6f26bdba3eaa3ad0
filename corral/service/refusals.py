"""A bound on the refusals that one caller writes into the audit log."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

A_MINUTE: Final = 60
"""Refusals of one caller that the audit log takes in a minute; those beyond are counted in the next line."""
_WINDOW: Final = 60.0
_REMEMBERED: Final = 10_000


class Refusals:
    """Counts each caller's refusals. Memory is bounded."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def left(self, caller: str, now: float) -> dict[str, int] | None:
        """None when this refusal is not to be written; else what its line says of those that were not."""
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
