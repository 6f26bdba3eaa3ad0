"""The use of devices by attempts; that of removed jobs is kept by day, user, queue and device model.

A report is summed by the database, so that a process holds no more rows than it asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import CTE, ColumnElement, Connection, Select, and_, case, func, literal, or_, select, union_all

from corral.kernel.ids import JobId
from corral.model.usage import DAY, GIB, MOST_ROWS, NOT_LOST, By, Held, Measured, UsageRow, Use, Used, UseOf
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.rows import clean, put
from corral.store.writer import Transaction

_jobs, _attempts, _days, _tags = tables.jobs, tables.attempts, tables.usage_days, tables.job_tags
_used: Final = tables.attempt_use
_CODE: Final = _attempts.c.code
_LOST: Final = and_(_CODE.is_not(None), _CODE.not_in(sorted(NOT_LOST)))
_AT_ONCE: Final = 500


class UsageRecords(Database):
    """Who used how much."""

    async def usage_between(
        self,
        begin: float,
        end: float,
        by: By,
        *,
        now: float,
        user: str = "",
        queues: Iterable[str] | None = None,
        most: int = MOST_ROWS,
    ) -> Used:
        """The use between two times, in the `most` largest rows; of one user, and of some queues, if these are named.

        Times are in seconds since 1970; what runs is counted to `now`. Removed jobs count by whole days in UTC, those
        that begin in that time, and by job, tag or node under no name.
        """
        lines = _lines(begin, end, by, now, user, queues)
        return await self.read(lambda connection: _largest(connection, lines, most))

    async def usage_groups(
        self,
        begin: float,
        end: float,
        by: By,
        *,
        now: float,
        user: str = "",
        queues: Iterable[str] | None = None,
        keys: Sequence[str] | None = None,
    ) -> list[UseOf]:
        """The use between two times by key, queue and device model; with `keys`, of these alone.

        Without `keys` all keys are one, "". The other arguments are those of `usage_between`.
        """
        lines = _lines(begin, end, by, now, user, queues)
        return await self.read(lambda connection: _grouped(connection, lines, keys))

    async def usage_of_users(
        self, begin: float, end: float, *, now: float, most: int, user: str = "", queues: Iterable[str] | None = None
    ) -> list[UseOf]:
        """The use between two times by user, queue and device model: `most` groups at most, in no order.

        The other arguments are those of `usage_between`.
        """
        lines = _lines(begin, end, By.USER, now, user, queues)
        return await self.read(lambda connection: _all_groups(connection, lines, most))


def used_in(
    connection: Connection, begin: float, end: float, by: By, now: float, user: str, queues: Iterable[str] | None
) -> Use:
    """The sum of what `usage_between` would tell."""
    lines = _lines(begin, end, by, now, user, queues)
    return _use(connection.execute(select(*(func.sum(lines.c[name]) for name in Use._fields))).one())


def keep_usage(transaction: Transaction, jobs: Sequence[JobId]) -> None:
    """Add the use of jobs that are about to be removed to that of their days, users, queues and device models."""
    sums: dict[tuple[int, str, str, str], Use] = {}
    for part in range(0, len(jobs), _AT_ONCE):
        for row in transaction.read(_HELD.where(_jobs.c.id.in_(list(jobs[part : part + _AT_ONCE])))):
            last = max(row.started_at, row.ended)
            measured = Measured(*(float(getattr(row, name) or 0.0) for name in _MEASURED))
            held = Held(row.started_at, last, row.millis, row.code, row.cpu_millis, row.memory_bytes, measured)
            for day, use in held.by_day().items():
                key = day, row.user, row.queue, row.model
                sums[key] = sums.get(key, Use()).plus(use)
    new = []
    for (day, user, queue, model), use in sums.items():
        known = select(*_SUMS).where(
            _days.c.day == day, _days.c.user == user, _days.c.queue == queue, _days.c.model == model
        )
        before = transaction.read(known).first()
        if before is not None:
            use = use.plus(Use(*before))
        new.append({"day": day, "user": user, "queue": queue, "model": model, **use._asdict()})
    if new:
        put(transaction, _days, new)


_SUMS: Final = tuple(_days.c[name] for name in Use._fields)
ENDED: Final = func.coalesce(_attempts.c.ended_at, _jobs.c.ended_at)
_MEASURED: Final = ("measured_seconds", "used_cpu", "used_memory", "joules", "used_measured", "used_devices", "idle")
_USED_COLUMNS: Final = (
    _used.c.measured_seconds, _used.c.cpu_seconds, _used.c.memory_gib_seconds, _used.c.joules, _used.c.device_seconds,
    _used.c.used_device_seconds, _used.c.idle_device_seconds,
)  # fmt: skip
_HELD: Final = (
    select(
        _attempts.c.started_at, func.coalesce(ENDED, _attempts.c.started_at).label("ended"), _attempts.c.millis,
        _CODE.label("code"), _jobs.c.user, _jobs.c.queue, _attempts.c.model, _attempts.c.cpu_millis,
        _attempts.c.memory_bytes, *(column.label(name) for column, name in zip(_USED_COLUMNS, _MEASURED, strict=True)),
    )
    .join(_jobs, _jobs.c.id == _attempts.c.job)
    .outerjoin(_used, _used.c.attempt == _attempts.c.id)
    .where(_attempts.c.started_at.is_not(None))
)  # fmt: skip


def _lines(begin: float, end: float, by: By, now: float, user: str, queues: Iterable[str] | None) -> CTE:
    """The use of each attempt and of each day of removed jobs, with key, name, queue and model."""
    user, known = clean(user), None if queues is None else [clean(queue) for queue in queues]
    live = _of_attempts(begin, min(end, now), by, now)
    old = _of_days(begin, end, by)
    if user:
        live, old = live.where(_jobs.c.user == user), old.where(_days.c.user == user)
    if known is not None:
        live, old = live.where(_jobs.c.queue.in_(known)), old.where(_days.c.queue.in_(known))
    return union_all(live, old).cte("lines")


def _of_attempts(begin: float, end: float, by: By, now: float) -> Select[Any]:
    """The use of the attempts of jobs that are known."""
    name = _jobs.c.name if by is By.JOB else literal("")
    about = (_key(by).label("key"), name.label("name"), _jobs.c.queue.label("queue"), _attempts.c.model.label("model"))
    found: Any = select(*about, *amounts_between(begin, end, now)).select_from(_attempts)
    found = found.join(_jobs, _jobs.c.id == _attempts.c.job).outerjoin(_used, _used.c.attempt == _attempts.c.id)
    if by is By.TAG:
        found = found.outerjoin(_tags, _tags.c.job == _jobs.c.id)
    selected: Select[Any] = found.where(*ran_between(begin, end, now))
    return selected


def bounds_between(begin: float, end: float, now: float) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """When an attempt began and ended within two times; what runs ends at `now`."""
    started, ended = _attempts.c.started_at, func.coalesce(ENDED, literal(now))
    return case((started > begin, started), else_=literal(begin)), case((ended < end, ended), else_=literal(end))


def amounts_between(begin: float, end: float, now: float) -> list[Any]:
    """The use of an attempt joined with its job and `attempt_use` within two times, in columns named as in `Use`."""
    first, last = bounds_between(begin, end, now)
    seconds = last - first
    part = seconds / (func.coalesce(ENDED, literal(now)) - _attempts.c.started_at)
    devices = seconds * _attempts.c.millis / 1000.0
    *used, idle = (part * func.coalesce(column, 0.0) for column in _USED_COLUMNS)
    amounts = (
        devices,
        case((_LOST, devices), else_=0.0),
        seconds,
        seconds * _attempts.c.cpu_millis / 1000.0,
        seconds * _attempts.c.memory_bytes / float(GIB),
        *used,
        case((_LOST, 0.0), else_=idle),
    )
    return _labelled(amounts)


def ran_between(begin: float, end: float, now: float) -> tuple[ColumnElement[bool], ...]:
    """The conditions for an attempt that ran within two times."""
    started, ended = _attempts.c.started_at, func.coalesce(ENDED, literal(now))
    in_time = or_(_jobs.c.live, _jobs.c.ended_at.is_(None), _jobs.c.ended_at > begin)
    return in_time, started < end, ended > begin, ended > started


def _labelled(amounts: Iterable[ColumnElement[Any]]) -> list[Any]:
    return [amount.label(name) for name, amount in zip(Use._fields, amounts, strict=True)]


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
        case By.MODEL:
            return _attempts.c.model


def _of_days(begin: float, end: float, by: By) -> Select[Any]:
    """The use of the days of removed jobs."""
    named: dict[By, ColumnElement[str]] = {By.USER: _days.c.user, By.QUEUE: _days.c.queue, By.MODEL: _days.c.model}
    key = named.get(by)
    about = (literal("") if key is None else key).label("key"), literal("").label("name"), _days.c.queue, _days.c.model
    return select(*about, *_labelled(_SUMS)).where(_days.c.day * DAY >= begin, _days.c.day * DAY < end)


def _largest(connection: Connection, lines: CTE, most: int) -> Used:
    """The largest rows, and the sum and number of all."""
    sums = [func.sum(lines.c[name]).label(name) for name in Use._fields]
    by_key = select(lines.c.key, func.max(lines.c.name).label("name"), *sums).group_by(lines.c.key)
    grouped = by_key.having(func.sum(lines.c.task_seconds) > 0).cte("grouped")
    order = grouped.c.device_seconds.desc(), grouped.c.task_seconds.desc(), grouped.c.key
    found = rows(connection, select(grouped).order_by(*order).limit(most))
    whole = select(func.count(), *(func.sum(grouped.c[name]) for name in Use._fields)).select_from(grouped)
    count, *amounts = connection.execute(whole).one()
    return Used([UsageRow(key, name, *_use(sums)) for key, name, *sums in found], _use(amounts), count)


def _grouped(connection: Connection, lines: CTE, keys: Sequence[str] | None) -> list[UseOf]:
    sums = [func.sum(lines.c[name]) for name in Use._fields]
    if keys is None:
        query = select(literal(""), lines.c.queue, lines.c.model, *sums).group_by(lines.c.queue, lines.c.model)
        return [_use_of(row) for row in rows(connection, query)]
    found: list[UseOf] = []
    for part in range(0, len(keys), _AT_ONCE):
        some = select(lines.c.key, lines.c.queue, lines.c.model, *sums)
        some = some.where(lines.c.key.in_(list(keys[part : part + _AT_ONCE])))
        found += [_use_of(row) for row in rows(connection, some.group_by(lines.c.key, lines.c.queue, lines.c.model))]
    return found


def _all_groups(connection: Connection, lines: CTE, most: int) -> list[UseOf]:
    sums = [func.sum(lines.c[name]) for name in Use._fields]
    about = lines.c.key, lines.c.queue, lines.c.model
    return [_use_of(row) for row in rows(connection, select(*about, *sums).group_by(*about).limit(most))]


def _use_of(row: Any) -> UseOf:
    key, queue, model, *amounts = row
    return UseOf(key, queue, model, _use(amounts))


def _use(amounts: Iterable[float | None]) -> Use:
    return Use(*(float(amount or 0.0) for amount in amounts))
