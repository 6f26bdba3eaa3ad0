"""What the stored jobs and attempts tell of the fairness of a week; rows are read one part at a time."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, and_, case, func, literal, or_, select

from corral.kernel.units import DEVICE
from corral.model.fairness import SHORT_SECONDS, Entitlement, Hours
from corral.model.finish_time import Stay
from corral.model.usage import DAY, NOT_LOST
from corral.store import tables
from corral.store.database import Database, rows

_PART: Final = 1000
"""Rows in memory at once."""
_jobs, _attempts, _days, _queues = tables.jobs, tables.attempts, tables.usage_days, tables.queues


class _Queue(msgspec.Struct, rename="camel"):
    """What is read of a queue's document."""

    parent: str = ""
    weight: float = 1.0
    deserved: dict[str, int | float | str] = {}


class _Node(msgspec.Struct):
    """What is read of a machine."""

    devices: list[msgspec.Raw] = []


_QUEUE: Final = msgspec.json.Decoder(_Queue, strict=False)
_NODE: Final = msgspec.json.Decoder(_Node)


@dataclass
class QueueWeek:
    """A queue at the top of the tree in a week."""

    hours: Hours
    entitlement: Entitlement
    waits: array[float] = field(default_factory=lambda: array("d"))
    worst: tuple[float, str] = (0.0, "")
    """The largest finish-time ratio and its job; the ratio is 0 where no job succeeded."""


class Finished(NamedTuple):
    """A job with devices that succeeded in the week."""

    job: str
    name: str
    user: str
    queue: str
    stay: Stay


@dataclass
class Week:
    """What is known of a week, by queue at the top of the tree."""

    queues: dict[str, QueueWeek] = field(default_factory=dict)
    finished: list[Finished] = field(default_factory=list)
    others: list[Stay] = field(default_factory=list)
    """The other jobs with devices that were there at a time of a finished one."""
    devices: int = 0
    """Those of the machines that are known now."""
    unsized: int = 0
    """Jobs with devices of which the store does not know how many they asked for."""
    removed_seconds: float = 0.0
    """Device-seconds of jobs that were removed since, by whole days."""


class FairnessRecords(Database):
    """The records of a week."""

    async def week(self, begin: float, end: float, now: float) -> Week:
        """What the queues at the top of the tree held, wanted and waited for between two times."""
        return await self.read(lambda connection: _week(connection, begin, min(end, now), now))


def _week(connection: Connection, begin: float, end: float, now: float) -> Week:
    week = Week()
    documents = {row.name: _QUEUE.decode(row.doc) for row in rows(connection, select(_queues.c.name, _queues.c.doc))}

    def of(queue: str) -> QueueWeek:
        top = _top(queue, documents)
        if top not in week.queues:
            week.queues[top] = QueueWeek(Hours(begin), _entitled(documents.get(top)))
        return week.queues[top]

    for row in _parts(connection, _held(begin, end, now)):
        hours = of(row.queue).hours
        hours.add(hours.held, row.started_at, min(row.ended, end), row.millis / DEVICE)
    for row in _parts(connection, _wanted(begin, end, now)):
        hours = of(row.queue).hours
        hours.add(hours.wanted, row.created_at, min(row.ended, end), row.device_millis / DEVICE)
    for row in _parts(connection, _started(begin, end)):
        of(row.queue).waits.append(max(0.0, row.started_at - row.created_at))
    for row in _parts(connection, _finished(begin, end)):
        seconds = row.needed / row.device_millis
        needed = max(SHORT_SECONDS, seconds)
        found = of(row.queue)
        found.worst = max(found.worst, (max(1.0, (row.ended_at - row.created_at) / needed), row.id))
        stay = Stay(row.created_at, row.ended_at, seconds, row.device_millis / DEVICE)
        week.finished.append(Finished(row.id, row.name, row.user, row.queue, stay))
    week.others = _others(connection, week.finished, end, now)
    week.devices = _devices(connection)
    week.unsized = connection.execute(_unsized(begin, end)).scalar_one()
    removed = select(func.coalesce(func.sum(_days.c.device_seconds), 0.0))
    removed = removed.where(_days.c.day * DAY >= begin, _days.c.day * DAY < end)
    week.removed_seconds = float(connection.execute(removed).scalar_one())
    return week


def _others(connection: Connection, finished: list[Finished], end: float, now: float) -> list[Stay]:
    """The jobs that were there at a time of a finished one, but are none of them."""
    if not finished:
        return []
    known = {each.job for each in finished}
    earliest = min(each.stay.submitted for each in finished)
    return [
        Stay(row.created_at, min(row.ended, end), 0.0, row.device_millis / DEVICE)
        for row in _parts(connection, _wanted(earliest, end, now))
        if row.id not in known
    ]


def _devices(connection: Connection) -> int:
    """The devices of all machines that are known."""
    documents = connection.execute(select(tables.nodes.c.doc)).scalars()
    return sum(len(_NODE.decode(each).devices) for each in documents)


def _parts(connection: Connection, query: Select[Any]) -> Any:
    """The rows of a query, so many at a time."""
    return connection.execution_options(yield_per=_PART).execute(query)


def _top(queue: str, documents: dict[str, _Queue]) -> str:
    for _ in range(len(documents)):
        parent = documents[queue].parent if queue in documents else ""
        if not parent:
            break
        queue = parent
    return queue


def _entitled(document: _Queue | None) -> Entitlement:
    if document is None:
        return Entitlement()
    amount = document.deserved.get("devices", 0)
    return Entitlement(document.weight, float(amount) if isinstance(amount, int | float) else 0.0)


def _held(begin: float, end: float, now: float) -> Select[Any]:
    ended = func.coalesce(_attempts.c.ended_at, _jobs.c.ended_at, literal(now))
    found = select(_jobs.c.queue, _attempts.c.started_at, ended.label("ended"), _attempts.c.millis)
    in_time = or_(_jobs.c.live, _jobs.c.ended_at.is_(None), _jobs.c.ended_at > begin)
    return found.join(_attempts, _attempts.c.job == _jobs.c.id).where(
        in_time, _attempts.c.millis > 0, _attempts.c.started_at < end, ended > begin
    )


def _wanted(begin: float, end: float, now: float) -> Select[Any]:
    ended = func.coalesce(_jobs.c.ended_at, literal(now))
    found = select(_jobs.c.id, _jobs.c.queue, _jobs.c.created_at, ended.label("ended"), _jobs.c.device_millis)
    return found.where(_jobs.c.device_millis > 0, _jobs.c.created_at < end, ended > begin)


def _started(begin: float, end: float) -> Select[Any]:
    found = select(_jobs.c.queue, _jobs.c.created_at, _jobs.c.started_at)
    return found.where(_jobs.c.started_at >= begin, _jobs.c.started_at < end)


def _finished(begin: float, end: float) -> Select[Any]:
    """Jobs with devices that succeeded, with the thousandths of device-seconds of attempts that were not lost."""
    ended = func.coalesce(_attempts.c.ended_at, _jobs.c.ended_at)
    kept = or_(_attempts.c.code.is_(None), _attempts.c.code.in_(sorted(NOT_LOST)))
    used = case(
        (and_(kept, _attempts.c.started_at.is_not(None)), (ended - _attempts.c.started_at) * _attempts.c.millis)
    )
    named = _jobs.c.id, _jobs.c.name, _jobs.c.user, _jobs.c.queue
    about = *named, _jobs.c.created_at, _jobs.c.ended_at, _jobs.c.device_millis
    found = select(*about, func.coalesce(func.sum(used), 0.0).label("needed"))
    found = found.join(_attempts, _attempts.c.job == _jobs.c.id).group_by(*about)
    return found.where(
        _jobs.c.phase == "succeeded", _jobs.c.device_millis > 0, _jobs.c.ended_at >= begin, _jobs.c.ended_at < end
    )


def _unsized(begin: float, end: float) -> Select[Any]:
    """The number of jobs that held devices in the week and are stored without their size."""
    found = select(func.count(func.distinct(_jobs.c.id))).join(_attempts, _attempts.c.job == _jobs.c.id)
    return found.where(
        _jobs.c.device_millis == 0, _attempts.c.millis > 0, _jobs.c.ended_at > begin, _attempts.c.started_at < end
    )
