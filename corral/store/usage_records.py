"""The use of devices by attempts; that of removed jobs is kept by day, user and queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, literal, or_, select

from corral.kernel.ids import JobId
from corral.model.usage import DAY, NOT_LOST, By, Held, UsageRow, Use
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.rows import clean, put
from corral.store.writer import Transaction

_jobs, _attempts, _days, _tags = tables.jobs, tables.attempts, tables.usage_days, tables.job_tags
_CODE: Final = _attempts.c.code
_LOST: Final = and_(_CODE.is_not(None), _CODE.not_in(sorted(NOT_LOST)))
_AT_ONCE: Final = 500


class UsageRecords(Database):
    """Who used how much."""

    async def usage_between(
        self, begin: float, end: float, by: By, *, now: float, user: str = "", queues: Iterable[str] | None = None
    ) -> list[UsageRow]:
        """The use between two times; of one user, and of some queues, if these are named.

        Times are in seconds since 1970; what runs is counted to `now`. Removed jobs count by whole days in UTC, those
        that begin in that time, and by job, tag or node under no name.
        """
        user, known = clean(user), None if queues is None else [clean(queue) for queue in queues]
        live = _of_attempts(begin, min(end, now), by, now)
        old = _of_days(begin, end, by)
        if user:
            live, old = live.where(_jobs.c.user == user), old.where(_days.c.user == user)
        if known is not None:
            live, old = live.where(_jobs.c.queue.in_(known)), old.where(_days.c.queue.in_(known))
        return await self.read(lambda connection: _summed(connection, live, old))


def keep_usage(transaction: Transaction, jobs: Sequence[JobId]) -> None:
    """Add the use of jobs that are about to be removed to that of their days, users and queues."""
    sums: dict[tuple[int, str, str], Use] = {}
    for part in range(0, len(jobs), _AT_ONCE):
        for row in transaction.read(_HELD.where(_jobs.c.id.in_(list(jobs[part : part + _AT_ONCE])))):
            held = Held(row.started_at, max(row.started_at, row.ended), row.millis, row.code)
            for day, use in held.by_day().items():
                key = day, row.user, row.queue
                sums[key] = sums.get(key, Use()).plus(use)
    new = []
    for (day, user, queue), use in sums.items():
        known = select(*_SUMS).where(_days.c.day == day, _days.c.user == user, _days.c.queue == queue)
        before = transaction.read(known).first()
        if before is not None:
            use = use.plus(Use(*before))
        new.append({"day": day, "user": user, "queue": queue, **use._asdict()})
    if new:
        put(transaction, _days, new)


_SUMS: Final = (_days.c.device_seconds, _days.c.lost_device_seconds, _days.c.task_seconds)
_ENDED: Final = func.coalesce(_attempts.c.ended_at, _jobs.c.ended_at)
_HELD: Final = (
    select(
        _attempts.c.started_at, func.coalesce(_ENDED, _attempts.c.started_at).label("ended"), _attempts.c.millis,
        _CODE.label("code"), _jobs.c.user, _jobs.c.queue,
    )
    .join(_jobs, _jobs.c.id == _attempts.c.job)
    .where(_attempts.c.started_at.is_not(None))
)  # fmt: skip


def _of_attempts(begin: float, end: float, by: By, now: float) -> Select[Any]:
    """The sums over attempts of the jobs that are known, by key and name."""
    started, ended = _attempts.c.started_at, func.coalesce(_ENDED, literal(now))
    first = case((started > begin, started), else_=literal(begin))
    last = case((ended < end, ended), else_=literal(end))
    seconds = last - first
    devices = seconds * _attempts.c.millis / 1000.0
    key, name = _key(by), (_jobs.c.name if by is By.JOB else literal(""))
    sums = func.sum(devices), func.sum(case((_LOST, devices), else_=0.0)), func.sum(seconds)
    found: Any = select(key.label("key"), func.max(name).label("name"), *sums).select_from(_attempts)
    found = found.join(_jobs, _jobs.c.id == _attempts.c.job)
    if by is By.TAG:
        found = found.outerjoin(_tags, _tags.c.job == _jobs.c.id)
    in_time = or_(_jobs.c.live, _jobs.c.ended_at.is_(None), _jobs.c.ended_at > begin)
    selected: Select[Any] = found.where(in_time, started < end, ended > begin, ended > started).group_by(key)
    return selected


def _key(by: By) -> ColumnElement[str]:
    match by:
        case By.USER:
            return _jobs.c.user
        case By.QUEUE:
            return _jobs.c.queue
        case By.JOB:
            return _jobs.c.id
        case By.TAG:
            return func.coalesce(_tags.c.tag, "")
        case By.NODE:
            return _attempts.c.node


def _of_days(begin: float, end: float, by: By) -> Select[Any]:
    """The sums over the days of removed jobs."""
    named: dict[By, ColumnElement[str]] = {By.USER: _days.c.user, By.QUEUE: _days.c.queue}
    key = named.get(by)
    columns = (literal("") if key is None else key).label("key"), literal("").label("name")
    found = select(*columns, *map(func.sum, _SUMS)).where(_days.c.day * DAY >= begin, _days.c.day * DAY < end)
    return found if key is None else found.group_by(key)


def _summed(connection: Connection, *queries: Select[Any]) -> list[UsageRow]:
    sums: dict[str, tuple[str, Use]] = {}
    for query in queries:
        for row in rows(connection, query):
            key, name, *amounts = row
            before = sums.get(key, ("", Use()))
            sums[key] = (name or before[0], before[1].plus(Use(*(float(amount or 0.0) for amount in amounts))))
    return [UsageRow(key, name, *use) for key, (name, use) in sums.items() if use.task_seconds]
