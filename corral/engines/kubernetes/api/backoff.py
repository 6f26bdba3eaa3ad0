"""Jittered exponential backoff and Retry-After, so that many clients do not return at the same moment."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from corral.kernel.draw import draw_between

MOST_SECONDS = 300.0
"""The longest wait in seconds that a server may request."""


class Backoff:
    """Waits that double from `low` to `high` seconds, each drawn from the upper half of its span."""

    def __init__(self, *, low: float, high: float, seed: int | str, ids: tuple[object, ...] = ()) -> None:
        self._low, self._high = low, high
        self._seed, self._ids = seed, ids
        self._drawn = 0
        self._failures = 0

    def next(self, asked: float | None = None) -> float:
        """Return the seconds to wait after one more failure. The wait `asked` by the server is added in full."""
        span = min(self._high, self._low * 2.0 ** min(self._failures, 60))
        self._failures += 1
        self._drawn += 1
        return (asked or 0.0) + draw_between(span / 2, span, self._seed, *self._ids, self._drawn)

    def reset(self) -> None:
        """Start again at the shortest wait, after a success."""
        self._failures = 0


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`. A date counts from the server's own `Date`, so that no clock is trusted."""
    asked = headers.get("Retry-After", "").strip()
    if not asked:
        return None
    if asked.isascii() and asked.isdigit():
        return min(float(asked[:9]), MOST_SECONDS)
    try:
        seconds = (parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("Date", ""))).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), MOST_SECONDS)
