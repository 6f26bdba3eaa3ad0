"""The weekly report on fairness among queues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from corral.kernel.errors import Forbidden, InvalidInput
from corral.model.fairness import (
    SHORT_SECONDS,
    FairnessReport,
    FairnessRow,
    JobFairness,
    UserFairness,
    jain,
    owed,
    percentile,
    week_of,
)
from corral.model.finish_time import Stay, finish_time_ratios
from corral.model.records import rfc3339
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.store import Store
from corral.store.fairness_records import QueueWeek, Week

_MOST: Final = 1000
"""Users, and jobs of one user, of a report at most."""
_WORST: Final = 10
"""Jobs of a report about everybody."""


class Fairness:
    """What queues were owed and got."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def report(self, actor: Actor, *, week: str = "", user: str = "") -> FairnessReport:
        """The fairness of a week such as `2026-W48`, by default of the last whole one.

        Its parts on users and jobs are about everybody for administrators, or about `user` alone, and about the caller for
        others.

        Raises InvalidInput for what is no week, or one that has not begun, and Forbidden for the jobs of others.
        """
        await self._context.check(actor, "queue.read", Resource("queue"))
        if user not in ("", actor.user) and not actor.is_admin:
            raise Forbidden("not-your-jobs", "Whether others were treated fairly is told to administrators.")
        now = self._context.clock.now()
        try:
            begin, end = week_of(week, now)
        except ValueError:
            raise InvalidInput("no-week", f"A week is written as 2026-W48, not {week[:50]!r}.") from None
        if begin >= now:
            raise InvalidInput("no-week", f"The week that begins at {rfc3339(begin)} has not begun.")
        return await fairness_between(self._context.store, begin, end, now, user=user if actor.is_admin else actor.user)


async def fairness_between(store: Store, begin: float, end: float, now: float, *, user: str = "") -> FairnessReport:
    """The report of a week between two times, in seconds since 1970; of users and jobs only those of `user`, if any."""
    return _report(await store.week(begin, end, now), begin, end, now, user)


def _report(week: Week, begin: float, end: float, now: float, user: str) -> FairnessReport:
    due = owed(
        {name: each.hours for name, each in week.queues.items()},
        {name: each.entitlement for name, each in week.queues.items()},
    )
    items = tuple(_row(name, each, due[name]) for name, each in sorted(week.queues.items()))
    ratios = [row.ratio for row in items if row.ratio is not None]
    worst = [row.worst_finish_time_ratio for row in items if row.worst_finish_time_ratio is not None]
    waits = [wait for each in week.queues.values() for wait in each.waits]
    index = jain(ratios)
    jobs = _jobs(week, user)
    return FairnessReport(
        rfc3339(begin),
        rfc3339(end),
        items,
        None if index is None else round(index, 4),
        max(worst, default=None),
        percentile(waits, 0.5),
        percentile(waits, 0.95),
        _users(jobs)[:_MOST],
        tuple(jobs[: _MOST if user else _WORST]),
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


def _jobs(week: Week, user: str) -> list[JobFairness]:
    """The jobs that succeeded, or those of one user, the worst off first. Without machines none has a ratio.

    A job that needed its devices for less than `SHORT_SECONDS` counts as one that needed and took the rest of them too.
    """
    if not week.devices:
        return []
    stays = [_longer(each.stay) for each in week.finished]
    ratios = finish_time_ratios([*stays, *week.others], week.devices)
    found = [
        JobFairness(
            each.job, each.name, each.user, each.queue, each.stay.devices,
            round(each.stay.ended - each.stay.submitted, 3), round(each.stay.seconds, 3), round(ratio, 3),
        )
        for each, ratio in zip(week.finished, ratios, strict=False)
        if ratio is not None and user in ("", each.user)
    ]  # fmt: skip
    return sorted(found, key=lambda each: (-each.rho, each.job))


def _longer(stay: Stay) -> Stay:
    more = max(0.0, SHORT_SECONDS - stay.seconds)
    return stay._replace(ended=stay.ended + more, seconds=stay.seconds + more)


def _users(jobs: Sequence[JobFairness]) -> tuple[UserFairness, ...]:
    """The users of jobs that come with the worst off first, in the same order."""
    by_user: dict[str, list[JobFairness]] = {}
    for each in jobs:
        by_user.setdefault(each.user, []).append(each)
    return tuple(
        UserFairness(user, len(of), percentile([each.rho for each in of], 0.5) or 0.0, of[0].rho, of[0].job)
        for user, of in by_user.items()
    )


def _unknown(week: Week, end: float, now: float) -> Iterator[str]:
    yield "Weights and deserved amounts are those of now; changes during the week are not counted."
    if week.finished:
        yield "Finish-time fairness counts the devices of the machines that are known now, whatever there was then."
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
