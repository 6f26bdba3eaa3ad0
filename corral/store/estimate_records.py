"""Store estimates of starts, and complete them with what came true."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Select, bindparam, delete, func, or_, select, update

from corral.model.estimates import KEPT_SECONDS, MOST_KEPT, GivenEstimate, LivedEstimate
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.rows import encode, put
from corral.store.writer import Transaction

_estimates: Final = tables.estimates
_GIVEN: Final = msgspec.json.Decoder(GivenEstimate)
_OPEN: Final = (_estimates.c.started.is_(None), _estimates.c.ended.is_(None))
_AT_ONCE: Final = 500
"""Rows of one write, so that no transaction of control's waits long behind it."""
_OUTCOME: Final = (
    update(_estimates)
    .where(_estimates.c.job == bindparam("j"), _estimates.c.at == bindparam("t"))
    .values(started=bindparam("s"), ended=bindparam("e"))
)


class EstimateRecords(Database):
    """The estimates that were given, of the last 40 days and at most 50,000."""

    async def add_estimates(self, given: Sequence[GivenEstimate]) -> None:
        """Store estimates; one of the same job and time is replaced."""
        for part in _parts([_row(each) for each in given]):
            await self.write(lambda transaction, part=part: put(transaction, _estimates, part))  # type: ignore[misc]

    async def estimates(self, since: float, queues: Collection[str] | None = None) -> list[LivedEstimate]:
        """The estimates that were given since a time, the oldest first; with `queues`, only of these."""
        query = select(_estimates).where(_estimates.c.at >= since).order_by(_estimates.c.at, _estimates.c.job)
        if queues is not None:
            query = query.where(_estimates.c.queue.in_(list(queues)))
        return await self.read(lambda connection: _lived(connection, query.limit(MOST_KEPT)))

    async def open_estimates(self) -> dict[str, float]:
        """By job that still waits, when the last estimate that is stored was given."""
        query = select(_estimates.c.job, func.max(_estimates.c.at).label("at")).where(*_OPEN).group_by(_estimates.c.job)
        return {row.job: row.at for row in await self.read(lambda connection: rows(connection, query))}

    async def latest_starts(self, limit: int) -> list[LivedEstimate]:
        """The estimates whose jobs started last, the latest first."""
        started = _estimates.c.started
        query = select(_estimates).where(started.is_not(None)).order_by(started.desc(), _estimates.c.job).limit(limit)
        return await self.read(lambda connection: _lived(connection, query))

    async def complete_estimates(self, now: float) -> int:
        """Store what came true of open estimates since the last call; returns their number.

        A job's first start after an estimate counts. A job that is over, or gone, without one has ended without a start.
        """
        came = await self.read(lambda connection: _outcomes(connection, now))
        for part in _parts(came):
            await self.write(lambda transaction, part=part: transaction.write(_OUTCOME, part))  # type: ignore[misc]
        return len(came)

    async def forget_estimates(self, now: float) -> None:
        """Delete estimates that are too old or too many."""
        at = _estimates.c.at
        surplus = select(at).order_by(at.desc()).offset(MOST_KEPT).limit(1)

        def run(transaction: Transaction) -> None:
            transaction.write(delete(_estimates).where(at < now - KEPT_SECONDS))
            newest = transaction.read(surplus).scalar()
            if newest is not None:
                transaction.write(delete(_estimates).where(at <= newest))

        await self.write(run)


def _lived(connection: Connection, query: Select[Any]) -> list[LivedEstimate]:
    """Decoded here, beside the event loop: there may be 50,000."""
    return [LivedEstimate(_GIVEN.decode(row.given), row.started, row.ended) for row in rows(connection, query)]


def _row(given: GivenEstimate) -> dict[str, Any]:
    return {
        "job": given.job,
        "at": given.at,
        "queue": given.queue,
        "given": encode(given),
        "started": None,
        "ended": None,
    }


def _outcomes(connection: Connection, now: float) -> list[dict[str, Any]]:
    """Parameters of `_OUTCOME` for the open estimates whose jobs have started or are over."""
    events, jobs = tables.events, tables.jobs
    key = (_estimates.c.job, _estimates.c.at)
    started = (
        select(*key, func.min(events.c.at).label("came"))
        .join(events, events.c.job == _estimates.c.job)
        .where(*_OPEN, events.c.kind == "job.started", events.c.at >= _estimates.c.at)
        .group_by(*key)
    )
    over = (
        select(*key, jobs.c.ended_at)
        .outerjoin(jobs, jobs.c.id == _estimates.c.job)
        .where(*_OPEN, or_(jobs.c.id.is_(None), ~jobs.c.live))
    )
    found = {
        (row.job, row.at): {"j": row.job, "t": row.at, "s": None, "e": now if row.ended_at is None else row.ended_at}
        for row in connection.execute(over)
    }
    for row in connection.execute(started):
        found[row.job, row.at] = {"j": row.job, "t": row.at, "s": row.came, "e": None}
    return list(found.values())


def _parts(found: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [found[at : at + _AT_ONCE] for at in range(0, len(found), _AT_ONCE)]
