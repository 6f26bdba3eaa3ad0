"""The history of a queue by week: how long its jobs waited, what they held, and what it lent and borrowed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from corral.model.records import Record

MOST_WEEKS: Final = 12
"""Weeks of a history, at most: series are kept for 90 days."""
WEEK: Final = 7 * 86_400
"""Seconds."""
_MONDAY: Final = 4 * 86_400
"""Seconds from 1970 on to a Monday, in UTC."""


class QueueHistoryWeek(Record, frozen=True):
    """One week of a queue with the queues below it; it begins on Monday in UTC."""

    week: str
    """Such as `2026-W48`."""
    begin: str
    started: int = 0
    """Jobs that started for the first time in it."""
    wait_p50: float | None = None
    """Seconds from submission to start; null where no job started."""
    wait_p95: float | None = None
    used: float = 0.0
    """Device-seconds that its jobs held."""
    borrowed: float | None = None
    """Device-seconds beyond its own; null where the server kept no series."""
    lent: float | None = None
    """Device-seconds of its own that others held; null as above."""


class QueueHistory(Record, frozen=True):
    """Weeks of a queue, the latest first; the first is not over."""

    queue: str
    weeks: tuple[QueueHistoryWeek, ...] = ()
    unknown: tuple[str, ...] = ()
    """What the records do not tell."""


def weeks_up_to(now: float, many: int) -> list[tuple[str, float]]:
    """Name and begin of the week of now and of those before it, the latest first."""
    monday = (int(now) - _MONDAY) // WEEK * WEEK + _MONDAY
    begins = [float(monday - back * WEEK) for back in range(many)]
    return [(_name(begin), begin) for begin in begins if begin >= 0]


def _name(begin: float) -> str:
    year, week, _ = datetime.fromtimestamp(begin, UTC).isocalendar()
    return f"{year}-W{week:02}"
