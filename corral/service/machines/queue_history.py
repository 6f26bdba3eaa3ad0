"""The history of a queue by week, from stored jobs and attempts and from control's series."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

import msgspec

from corral.kernel.errors import NotFound, Unavailable
from corral.model.metrics.families import Metric
from corral.model.queue_history import MOST_WEEKS, WEEK, QueueHistory, QueueHistoryWeek, weeks_up_to
from corral.model.records import rfc3339
from corral.model.series import SeriesQuestion, SeriesView
from corral.model.usage import By
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.store.queue_waits import Waits

_STEP: Final = 600
"""Seconds of a step: series of more than a day ago have no shorter ones."""
_DAY: Final = 86_400
_REMOVED: Final = "Waits of jobs that were removed since are not counted; what they held is, by whole days."
_SERIES: Final = "Lent and borrowed come from the server's series: times at which it did not run count as nothing."
_NO_SERIES: Final = "The server has no series, so what was lent and borrowed is not known."


class QueueHistories:
    """Histories of queues."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def show(self, actor: Actor, name: str, *, weeks: int = 8) -> QueueHistory:
        """The last weeks of a queue with those below it, the present one first.

        Raises NotFound.
        """
        await self._context.check(actor, "queue.read", Resource("queue", name))
        names = await self._with_those_below(name)
        store, now = self._context.store, self._context.clock.now()
        asked = weeks_up_to(now, min(weeks, MOST_WEEKS))
        first = asked[-1][1]
        waits = await store.waits_by_week(names, first)
        kept = await self._weeks_with_series(first, now)
        found = []
        for week, begin in asked:
            used = await store.usage_groups(begin, begin + WEEK, By.QUEUE, now=now, queues=names)
            borrowed = lent = None
            number = int((begin - first) // WEEK)
            if number in kept:
                borrowed, lent = await self._borrowed_and_lent(name, begin, min(begin + WEEK, now))
            started, p50, p95 = waits.get(number, Waits(0, None, None))
            held = round(sum(each.use.device_seconds for each in used), 3)
            found.append(QueueHistoryWeek(week, rfc3339(begin), started, p50, p95, held, borrowed, lent))
        return QueueHistory(name, tuple(found), (_REMOVED, _SERIES if kept else _NO_SERIES))

    async def _with_those_below(self, name: str) -> Collection[str]:
        """The names of a queue and all queues below it."""
        parents = {each.name: str(each.doc.get("parent", "")) for each in await self._context.store.queues()}
        parents.setdefault("default", "")
        if name not in parents:
            known = ", ".join(sorted(parents)[:20])
            raise NotFound("queue-not-found", f"There is no queue {name[:100]}; they are {known}.")
        return {each for each in parents if name in _up(each, parents)}

    async def _weeks_with_series(self, first: float, now: float) -> set[int]:
        """The numbers of the weeks of which control has series; none while it does not answer."""
        try:
            found = await self._series(first, now, _DAY, (Metric.LEASE_EPOCH,), {})
        except Unavailable:
            return set()
        days = {day for series in found for day, value in enumerate(series.mean) if value is not None}
        return {day * _DAY // WEEK for day in days}

    async def _borrowed_and_lent(self, queue: str, begin: float, end: float) -> tuple[float, float]:
        """Device-seconds in a time; a step without a value is one in which there was nothing."""
        wanted = {"queue": queue, "resource": "devices"}
        found = await self._series(begin, end, _STEP, (Metric.QUEUE_BORROWED, Metric.QUEUE_LENT), wanted)
        sums = dict.fromkeys((Metric.QUEUE_BORROWED, Metric.QUEUE_LENT), 0.0)
        for series in found:
            sums[Metric(series.family)] += _STEP * sum(value for value in series.mean if value is not None)
        return round(sums[Metric.QUEUE_BORROWED], 3), round(sums[Metric.QUEUE_LENT], 3)

    async def _series(
        self, begin: float, end: float, step: int, families: tuple[Metric, ...], labels: dict[str, str]
    ) -> list[SeriesView]:
        question = SeriesQuestion(begin, -(-end // step) * step, step, tuple(map(str, families)), labels=labels)
        answer: Any = await self._context.control.request("/series", msgspec.to_builtins(question))
        items, _ = msgspec.convert(answer, tuple[list[SeriesView], int])
        return items


def _up(name: str, parents: dict[str, str]) -> Iterator[str]:
    """A queue and those above it."""
    for _ in range(len(parents) + 1):
        if not name:
            return
        yield name
        name = parents.get(name, "")
