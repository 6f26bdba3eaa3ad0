"""Reports on what jobs asked for beside what they used, for those who may read their figures."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import msgspec

from corral.kernel.errors import CorralError, Forbidden, InvalidInput
from corral.model.efficiency.figures import FAMILIES, figures_by_role
from corral.model.efficiency.records import EfficiencyReport, EfficiencySum, JobEfficiency
from corral.model.efficiency.verdict import JobHeld, judge, summed
from corral.model.records import rfc3339
from corral.model.series import SeriesQuestion, SeriesView
from corral.model.usage import DAY, By, UsageRow, Use
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.times import read_time
from corral.service.usage.usage import Usage
from corral.store import Store

Ask = Callable[[SeriesQuestion], Awaitable[tuple[Sequence[SeriesView], int]]]
"""Reads series: those that fit a question, and how many more there are."""

MOST_JOBS: Final = 100
"""Jobs of one report whose figures are read; of more, those with the most device-seconds."""
MOST_USERS: Final = 100
USUAL_SECONDS: Final = 7 * DAY
"""How far a report looks back where nobody says how far."""
_STEPS: Final = 48
"""The most steps of a question: their means count alike."""
_FINE: Final = 15
_COARSE: Final = 600
_FINE_KEPT: Final = 24 * 3600
"""Seconds for which single values are kept; older ones have steps of 10 min."""


class Efficiency:
    """What jobs asked for and used."""

    def __init__(self, context: Context, usage: Usage) -> None:
        self._context = context
        self._usage = usage

    async def of_job(self, actor: Actor, ref: str) -> JobEfficiency:
        """What a job asked for and used since it first ran.

        Raises NotFound, Forbidden, and InvalidInput for a job that has not run.
        """
        record, _ = await self._context.job_for(actor, ref, "job.metrics")
        now = self._context.clock.now()
        found = await self._context.store.held_between(0.0, now, [record.id], now=now)
        if not found:
            raise InvalidInput("no-attempt", f"{record.summary.name} has not run, so nothing can be said of its use.")
        return await judged(found[0], self._ask, now)

    async def report(
        self, actor: Actor, *, user: str = "", queue: str = "", begin: str = "", end: str = ""
    ) -> EfficiencyReport:
        """What jobs asked for and used between two times, by default in the last week.

        Administrators see everybody's, managers that of their queues, and others their own. Raises InvalidInput for what
        is no time, Forbidden for the jobs of others.
        """
        now = self._context.clock.now()
        if not begin:
            begin = rfc3339(max(0.0, (read_time("to", end) if end else now) - USUAL_SECONDS))
        since, until, now, of = await self._usage.asked(actor, begin, end, user, queue)
        return await report_between(self._context.store, self._ask, since, until, now, user=of, queue=queue)

    async def _ask(self, question: SeriesQuestion) -> tuple[Sequence[SeriesView], int]:
        answer = await self._context.control.request("/series", msgspec.to_builtins(question))
        return msgspec.convert(answer, tuple[list[SeriesView], int])


async def report_between(
    store: Store, ask: Ask, begin: float, end: float, now: float, *, user: str = "", queue: str = ""
) -> EfficiencyReport:
    """The report on jobs between two times, in seconds since 1970; of one user or one queue if these are named."""
    queues = [queue] if queue else None
    by_job = await store.usage_between(begin, end, By.JOB, now=now, user=user, queues=queues, most=MOST_JOBS + 1)
    by_user = await store.usage_between(begin, end, By.USER, now=now, user=user, queues=queues, most=MOST_USERS)
    named = [row.key for row in by_job.rows if row.key][:MOST_JOBS]
    items = [await judged(held, ask, now) for held in await store.held_between(begin, end, named, now=now)]
    items.sort(key=lambda each: (-each.device_seconds, each.job))
    of_user = defaultdict[str, list[JobEfficiency]](list)
    for each in items:
        of_user[each.user].append(each)
    return EfficiencyReport(
        rfc3339(begin),
        rfc3339(end),
        summed("", by_job.total, items),
        tuple(_of_user(row, of_user[row.key]) for row in by_user.rows),
        tuple(items),
        max(0, by_job.row_count - len(items)),
    )


def _of_user(row: UsageRow, jobs: Iterable[JobEfficiency]) -> EfficiencySum:
    return summed(row.key, Use(row.device_seconds, row.lost_device_seconds), jobs)


async def judged(held: JobHeld, ask: Ask, now: float) -> JobEfficiency:
    """What is said of one job, with the figures that are kept of it."""
    try:
        series = await _series(held, ask, now)
    except Forbidden:
        raise
    except CorralError as error:
        return judge(held, {}, f"The figures of this job cannot be read: {error.message}")
    return judge(held, figures_by_role(series))


async def _series(held: JobHeld, ask: Ask, now: float) -> list[SeriesView]:
    """The series of a job; where one answer cannot hold them, as many of each family as an answer holds."""
    question = question_for(held, now)
    found, left_out = await ask(question)
    if not left_out:
        return list(found)
    return [
        series
        for family in question.families
        for series in (await ask(msgspec.structs.replace(question, families=(family,))))[0]
    ]


def question_for(held: JobHeld, now: float) -> SeriesQuestion:
    """The question for the series of a job while it ran, in at most 48 steps."""
    unit = _FINE if now - held.begun <= _FINE_KEPT else _COARSE
    step = max(1, math.ceil((held.ended - held.begun) / _STEPS / unit)) * unit
    end = math.ceil(held.ended / step) * step
    return SeriesQuestion(held.begun, max(end, held.begun + step), step, tuple(map(str, FAMILIES)), held.job)
