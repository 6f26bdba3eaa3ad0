"""Times that people write on the command line."""

from __future__ import annotations

from datetime import UTC, datetime

from corral.kernel.errors import InvalidInput


def seconds_of(option: str, text: str) -> float | None:
    """Return a time in seconds since 1970, in UTC unless it says otherwise; None for no text.

    Raises InvalidInput, which names the option.
    """
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        message = f"{option} {text[:50]!r} is not a time; write it as 2026-11-27T10:00:00Z."
        raise InvalidInput("no-time", message) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
