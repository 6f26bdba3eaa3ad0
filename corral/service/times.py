"""Times that callers write."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from corral.kernel.errors import InvalidInput
from corral.model.records import rfc3339

_LONGEST: Final = 40


def read_time(name: str, text: str) -> float:
    """Seconds since 1970; a time without a zone is in UTC.

    Raises InvalidInput, which calls it `name`, for what is no time, and for a time before 1970 or after 9999.
    """
    try:
        at = datetime.fromisoformat(text[:_LONGEST])
        seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        if seconds < 0:
            raise ValueError(text)
        rfc3339(seconds)
    except (ValueError, OverflowError):
        raise InvalidInput(
            "no-time", f"{name} is a time such as 2026-11-27T10:00:00Z or 2026-11-27, not {text[:50]!r}."
        ) from None
    return seconds
