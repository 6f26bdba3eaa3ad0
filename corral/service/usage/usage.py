"""Reports on the use of devices, for those whose use it is, the managers of its queues, and administrators."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import msgspec

from corral.kernel.errors import Forbidden, InvalidInput
from corral.model.charges import Charge, ChargePage, charges
from corral.model.configuration import IN_FORCE, read_revision
from corral.model.prices import PriceList, days
from corral.model.records import rfc3339
from corral.model.usage import DAY, MOST_ROWS, By, UsageReport, UsageRow, Use, Used
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.times import read_time
from corral.spec.prices import PricesDocument

_USUAL: Final = 30 * DAY
"""Seconds that a report looks back where nobody says how far."""
MOST_GROUPS: Final = 20_000
"""Users, queues and device models of one day of charges."""
CHARGES_AT_ONCE: Final = 2_000
"""Charges after which an answer ends with the day."""


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
        since, until, now, of = await self.asked(actor, begin, end, user, queue)
        if by and by not in set(By):
            raise InvalidInput("bad-sum", f"Use is summed by {', '.join(By)}, not by {by[:50]}.")
        used = await self._context.store.usage_between(
            since, until, By(by or By.USER), now=now, user=of, queues=[queue] if queue else None, most=MOST_ROWS
        )
        report = _report(used, since, until, by or By.USER)
        prices = await self._prices()
        return report if prices is None else await self._with_costs(report, since, until, now, of, queue, prices)

    async def charges(
        self, actor: Actor, *, begin: str = "", end: str = "", user: str = "", queue: str = ""
    ) -> ChargePage:
        """What users used from `begin` to `end` by day, queue and device model, with its cost; some whole days of it.

        Times, callers and errors are those of `report`; InvalidInput too when a day has too many charges.
        """
        since, until, now, of = await self.asked(actor, begin, end, user, queue)
        prices = await self._prices() or PriceList()
        queues, found = [queue] if queue else None, list[Charge]()
        for first, last in days(since, min(until, max(now, since))):
            groups = await self._context.store.usage_of_users(
                first, last, now=now, most=MOST_GROUPS + 1, user=of, queues=queues
            )
            if len(groups) > MOST_GROUPS:
                raise InvalidInput(
                    "too-many-charges",
                    f"On {rfc3339(first)[:10]} more than {MOST_GROUPS:,} users, queues and models have charges; "
                    "ask for one user or queue.",
                )
            found += charges(groups, first, last, prices)
            if len(found) >= CHARGES_AT_ONCE and last < until:
                return ChargePage(prices.currency, tuple(found), rfc3339(last))
        return ChargePage(prices.currency, tuple(found))

    async def _prices(self) -> PriceList | None:
        """The prices in force."""
        revision = await self._context.store.document("Prices", IN_FORCE)
        if revision is None or revision.deleted:
            return None
        document = read_revision(revision)
        return PriceList.of(document) if isinstance(document, PricesDocument) else None

    async def _with_costs(
        self, report: UsageReport, since: float, until: float, now: float, user: str, queue: str, prices: PriceList
    ) -> UsageReport:
        """The report with what its rows and its total cost."""
        by, queues = By(report.by), [queue] if queue else None
        keys, total, costs = [row.key for row in report.items], 0.0, defaultdict[str, float](float)
        for first, last in prices.periods(since, until):
            asked: dict[str, Any] = {"now": now, "user": user, "queues": queues}
            for each in await self._context.store.usage_groups(first, last, by, **asked):
                total += prices.price(each.queue, each.model, first).of(each.use)
            for each in await self._context.store.usage_groups(first, last, by, **asked, keys=keys):
                costs[each.key] += prices.price(each.queue, each.model, first).of(each.use)
        items = (msgspec.structs.replace(row, cost=round(costs[row.key], 6)) for row in report.items)
        whole = msgspec.structs.replace(report.total, cost=round(total, 6))
        return msgspec.structs.replace(report, items=tuple(items), total=whole, currency=prices.currency)

    async def asked(self, actor: Actor, begin: str, end: str, user: str, queue: str) -> tuple[float, float, float, str]:
        """The period, the present time, and whose use is told; raises Forbidden and InvalidInput."""
        await self._context.check(actor, "queue.read", Resource("queue", queue))
        now = self._context.clock.now()
        until = read_time("to", end) if end else now
        since = read_time("from", begin) if begin else max(0.0, until - _USUAL)
        if since >= until:
            raise InvalidInput("bad-period", f"The period from {rfc3339(since)} to {rfc3339(until)} has no length.")
        return since, until, now, self._whose(actor, user, queue)

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


def _report(used: Used, begin: float, end: float, by: str) -> UsageReport:
    shown = tuple(_rounded(each) for each in used.rows)
    total = _rounded(UsageRow("", "", *used.total))
    return UsageReport(rfc3339(begin), rfc3339(end), str(by), total, shown, used.row_count - len(shown))


def _rounded(row: UsageRow) -> UsageRow:
    """To the thousandth of a second: sums of floats differ in their last digits by their order."""
    return msgspec.structs.replace(row, **{name: round(getattr(row, name), 3) for name in Use._fields})
