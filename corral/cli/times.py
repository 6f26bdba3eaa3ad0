"""Times that people write on the command line."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from corral.kernel.errors import InvalidInput
from corral.kernel.units import parse_duration


def seconds_of(option: str, text: str) -> float | None:
    """Return in seconds since 1970 a time or a day, in UTC unless it says otherwise, or so long ago; None for no text.

    Raises InvalidInput, which names the option.
    """
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):  # it may be a duration, such as 12h
        pass
    try:
        return max(0.0, time.time() - parse_duration(text))
    except ValueError:
        message = f"{option} {text[:50]!r} is not a time; write it as 2026-11-27T10:00:00Z, 2026-11-27 or 12h (ago)."
        raise InvalidInput("no-time", message) from None


def time_of(option: str, text: str) -> str:
    """Return the same in RFC 3339; "" for no text. Raises InvalidInput, which names the option."""
    seconds = seconds_of(option, text)
    if seconds is None:
        return ""
    from corral.model.records import rfc3339

    try:
        return rfc3339(max(0.0, seconds))
    except (ValueError, OverflowError):
        raise InvalidInput("no-time", f"{option} {text[:50]!r} is after the year 9999.") from None
