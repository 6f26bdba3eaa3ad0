"""Reports on the use of devices, for those whose use it is, the managers of its queues, and administrators."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from corral.kernel.errors import Forbidden, InvalidInput
from corral.model.records import rfc3339
from corral.model.usage import DAY, MOST_ROWS, By, UsageReport, UsageRow, Use, Used
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context

_USUAL: Final = 30 * DAY
"""Seconds that a report looks back where nobody says how far."""
_LONGEST_TIME: Final = 40


class Usage:
    """Who used how much."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def report(
        self, actor: Actor, *, by: str = "", begin: str = "", end: str = "", user: str = "", queue: str = ""
    ) -> UsageReport:
        """The use from `begin` to `end`, RFC 3339 times or days in UTC; by default of the last 30 days.

        Administrators see everybody's, managers that of their queues, and others their own.

        Raises InvalidInput for what is no time or no way to sum, Forbidden for the use of others.
        """
        await self._context.check(actor, "queue.read", Resource("queue", queue))
        now = self._context.clock.now()
        until = _time("to", end) if end else now
        since = _time("from", begin) if begin else max(0.0, until - _USUAL)
        if since >= until:
            raise InvalidInput("bad-period", f"The period from {rfc3339(since)} to {rfc3339(until)} has no length.")
        if by and by not in set(By):
            raise InvalidInput("bad-sum", f"Use is summed by {', '.join(By)}, not by {by[:50]}.")
        of = self._whose(actor, user, queue)
        used = await self._context.store.usage_between(
            since, until, By(by or By.USER), now=now, user=of, queues=[queue] if queue else None, most=MOST_ROWS
        )
        return _report(used, since, until, by or By.USER)

    def _whose(self, actor: Actor, user: str, queue: str) -> str:
        """The user whose use is told; "" is everybody's."""
        if actor.is_admin or user == actor.user or (queue and (queue in actor.manages or "*" in actor.manages)):
            return user
        if user:
            raise Forbidden(
                "not-your-use",
                f"The use of {user[:100]} is told to administrators and to the managers of a queue, for it.",
            )
        return actor.user


def _time(name: str, text: str) -> float:
    """Seconds since 1970; raises InvalidInput for what is no time, and for a time before that."""
    try:
        at = datetime.fromisoformat(text[:_LONGEST_TIME])
        seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        if seconds < 0:
            raise ValueError(text)
        rfc3339(seconds)
    except (ValueError, OverflowError):
        raise InvalidInput(
            "no-time", f"{name} is a time such as 2026-11-27T10:00:00Z or 2026-11-27, not {text[:50]!r}."
        ) from None
    return seconds


def _report(used: Used, begin: float, end: float, by: str) -> UsageReport:
    shown = tuple(_rounded(each) for each in used.rows)
    total = _rounded(UsageRow("", "", *used.total))
    return UsageReport(rfc3339(begin), rfc3339(end), str(by), total, shown, used.row_count - len(shown))


def _rounded(row: UsageRow) -> UsageRow:
    """To the thousandth of a second: sums of floats differ in their last digits by their order."""
    return msgspec.structs.replace(row, **{name: round(getattr(row, name), 3) for name in Use._fields})
