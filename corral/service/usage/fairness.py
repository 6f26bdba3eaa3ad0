"""The weekly report on fairness among queues."""

from __future__ import annotations

from collections.abc import Iterator

from corral.kernel.errors import InvalidInput
from corral.model.fairness import FairnessReport, FairnessRow, jain, owed, percentile, week_of
from corral.model.records import rfc3339
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.store import Store
from corral.store.fairness_records import QueueWeek, Week


class Fairness:
    """What queues were owed and got."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def report(self, actor: Actor, *, week: str = "") -> FairnessReport:
        """The fairness of a week such as `2026-W48`, by default of the last whole one.

        Raises InvalidInput for what is no week, or one that has not begun.
        """
        await self._context.check(actor, "queue.read", Resource("queue"))
        now = self._context.clock.now()
        try:
            begin, end = week_of(week, now)
        except ValueError:
            raise InvalidInput("no-week", f"A week is written as 2026-W48, not {week[:50]!r}.") from None
        if begin >= now:
            raise InvalidInput("no-week", f"The week that begins at {rfc3339(begin)} has not begun.")
        return await fairness_between(self._context.store, begin, end, now)


async def fairness_between(store: Store, begin: float, end: float, now: float) -> FairnessReport:
    """The report of a week between two times, in seconds since 1970."""
    return _report(await store.week(begin, end, now), begin, end, now)


def _report(week: Week, begin: float, end: float, now: float) -> FairnessReport:
    due = owed(
        {name: each.hours for name, each in week.queues.items()},
        {name: each.entitlement for name, each in week.queues.items()},
    )
    items = tuple(_row(name, each, due[name]) for name, each in sorted(week.queues.items()))
    ratios = [row.ratio for row in items if row.ratio is not None]
    worst = [row.worst_finish_time_ratio for row in items if row.worst_finish_time_ratio is not None]
    waits = [wait for each in week.queues.values() for wait in each.waits]
    index = jain(ratios)
    return FairnessReport(
        rfc3339(begin),
        rfc3339(end),
        items,
        None if index is None else round(index, 4),
        max(worst, default=None),
        percentile(waits, 0.5),
        percentile(waits, 0.95),
        tuple(_unknown(week, end, now)),
    )


def _row(name: str, week: QueueWeek, due: float) -> FairnessRow:
    got, (worst, job) = sum(week.hours.held), week.worst
    return FairnessRow(
        name,
        round(due, 3),
        round(got, 3),
        round(got / due, 4) if due > 0 else None,
        len(week.waits),
        percentile(week.waits, 0.5),
        percentile(week.waits, 0.95),
        round(worst, 3) if job else None,
        job,
    )


def _unknown(week: Week, end: float, now: float) -> Iterator[str]:
    yield "Weights and deserved amounts are those of now; changes during the week are not counted."
    if end > now:
        yield "The week is not over: it is counted up to now."
    if week.removed_seconds:
        hours = week.removed_seconds / 3600
        yield f"Jobs that were removed since held {hours:,.1f} device-hours; they are not counted here."
    if week.unsized:
        yield (
            f"How many devices {week.unsized} jobs of an earlier version asked for is not stored: they wanted what they "
            "held."
        )
