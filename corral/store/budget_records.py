"""Budgets of device-hours, and how much of them is used and promised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Double, bindparam, case, delete, func, insert, literal, select

from corral.kernel.units import DEVICE
from corral.model.accounts import AuditWrite
from corral.model.budgets import Budget, BudgetKind, Standing, TopUp, check, family, window_of
from corral.model.usage import By
from corral.store import tables
from corral.store.audit import write_audit
from corral.store.database import Database, rows
from corral.store.rows import clean, put
from corral.store.usage_records import used_in
from corral.store.writer import Transaction

Read = Callable[..., Any]
"""A function that runs a statement: `Connection.execute` or `Transaction.read`."""


class _Queue(msgspec.Struct):
    parent: str = ""


_jobs, _budgets, _top_ups, _queues = tables.jobs, tables.budgets, tables.budget_top_ups, tables.queues
_QUEUE: Final = msgspec.json.Decoder(_Queue)
_ALL: Final = select(_budgets).order_by(_budgets.c.kind, _budgets.c.name, _budgets.c.window)


class BudgetRecords(Database):
    """Budgets, what was added to them, and how they stand."""

    async def budgets(self) -> list[Budget]:
        """All budgets, in order."""
        return await self.read(lambda connection: [Budget(*row) for row in rows(connection, _ALL)])

    async def put_budget(self, budget: Budget, audit: AuditWrite) -> None:
        """Store a budget in place of the one of its queue or user and window."""

        def run(transaction: Transaction) -> None:
            put(transaction, _budgets, [msgspec.to_builtins(budget)])
            write_audit(transaction, audit)

        await self.write(run)
        self.admission_changed()

    async def remove_budget(self, kind: str, name: str, window: str, audit: AuditWrite) -> bool:
        """Remove a budget and what was added to it; False when there is none."""

        def run(transaction: Transaction) -> bool:
            if transaction.read(select(_budgets.c.name).where(*_is(_budgets, kind, name, window))).first() is None:
                return False
            for table in (_budgets, _top_ups):
                transaction.write(delete(table).where(*_is(table, kind, name, window)))
            write_audit(transaction, audit)
            return True

        removed = await self.write(run)
        self.admission_changed()
        return removed

    async def top_up(self, kind: str, name: str, window: str, since: float, more: TopUp, audit: AuditWrite) -> bool:
        """Add to a budget for the window that began at `since`; False when there is no such budget."""

        def run(transaction: Transaction) -> bool:
            if transaction.read(select(_budgets.c.name).where(*_is(_budgets, kind, name, window))).first() is None:
                return False
            number = func.coalesce(func.max(_top_ups.c.number), 0)
            last = select(number).where(*_is(_top_ups, kind, name, window), _top_ups.c.since == since)
            new = {"kind": kind, "name": name, "window": window, "since": since}
            new |= {"number": transaction.read(last).scalar_one() + 1, **msgspec.to_builtins(more)}
            transaction.write(insert(_top_ups), new)
            write_audit(transaction, audit)
            return True

        return await self.write(run)

    async def standings(
        self,
        now: float,
        *,
        queue: str | None = None,
        user: str | None = None,
        used: Mapping[tuple[str, str, str], float] | None = None,
    ) -> list[Standing]:
        """How budgets stand at `now`; only those that a job of this queue and user counts for, if these are named.

        `used` has the device-seconds of budgets, by their keys, that need not be summed anew.
        """
        return await self.read(lambda connection: _standings(connection, now, queue, user, used or {}))


def check_stored(read: Read, standings: Sequence[Standing], new: Sequence[str], now: float) -> list[str]:
    """The warnings for new jobs, already inserted, by their ids.

    What is promised is read again, because other submissions may have come since the standings were read.

    Raises Conflict `budget-used-up`.
    """
    warnings = []
    for each in standings:
        promised = _promised(read, each.budget, each.queues, each.end, now)
        times = {"left": max(0.0, each.end - now), "now": now}
        asked = read(_OF_JOBS, times | {"ids": list(new)}).scalar_one()
        warnings.append(check(each, promised, float(asked)))
    return [warning for warning in warnings if warning]


def _is(table: Any, kind: str, name: str, window: str) -> tuple[ColumnElement[bool], ...]:
    return table.c.kind == clean(kind), table.c.name == clean(name), table.c.window == clean(window)


def _standings(
    connection: Connection, now: float, queue: str | None, user: str | None, used: Mapping[tuple[str, str, str], float]
) -> list[Standing]:
    known = [Budget(*row) for row in rows(connection, _ALL)]
    if not known:
        return []
    of_queues = any(each.kind == BudgetKind.QUEUE for each in known)
    queues = rows(connection, select(_queues.c.name, _queues.c.doc)) if of_queues else []
    parents = {row.name: _QUEUE.decode(row.doc).parent for row in queues}
    found = []
    for budget in known:
        is_user = budget.kind == BudgetKind.USER
        names = () if is_user else family(budget.name, parents)
        if user is not None and is_user and budget.name != user:
            continue
        if queue is not None and not is_user and queue not in names:
            continue
        found.append(_standing(connection, budget, names, now, used.get(budget.key)))
    return found


def _standing(
    connection: Connection, budget: Budget, queues: tuple[str, ...], now: float, known: float | None
) -> Standing:
    begin, end = window_of(budget.window, now)
    user = "" if queues else budget.name
    used = known
    if used is None:
        used = used_in(connection, begin, now, By.USER, now, user, queues or None).device_seconds
    promised = _promised(connection.execute, budget, queues, end, now)
    more = select(_top_ups).where(*_is(_top_ups, budget.kind, budget.name, budget.window), _top_ups.c.since == begin)
    top_ups = tuple(
        TopUp(row.device_hours, row.at, row.actor, row.reason)
        for row in rows(connection, more.order_by(_top_ups.c.number))
    )
    return Standing(budget, begin, end, queues, used, promised, top_ups)


def _promised(read: Read, budget: Budget, queues: tuple[str, ...], end: float, now: float) -> float:
    """Device-seconds that live jobs may still hold before `end`."""
    times = {"left": max(0.0, end - now), "now": now}
    if queues:
        return float(read(_OF_QUEUES, times | {"queues": list(queues)}).scalar_one())
    return float(read(_OF_USER, times | {"of": budget.name}).scalar_one())


def _seconds() -> ColumnElement[Any]:
    """What a job may still hold, in device-seconds: the rest of its maxDuration, at most what is left of the window."""
    left, now, longest = bindparam("left", type_=Double), bindparam("now", type_=Double), _jobs.c.longest_seconds
    rest = func.coalesce(_jobs.c.started_at, now) + longest - now
    seconds = case((longest == 0, left), (rest < 0, literal(0.0)), (rest < left, rest), else_=left)
    return func.coalesce(func.sum(_jobs.c.device_millis * seconds / float(DEVICE)), 0.0)


_OF_LIVE: Final = select(_seconds()).where(_jobs.c.live)
# Made once, because making them costs more than asking. SQLite by itself would read all jobs that have ended, too.
_OF_QUEUES: Final = _OF_LIVE.where(_jobs.c.queue.in_(bindparam("queues", expanding=True))).with_hint(
    _jobs, "INDEXED BY jobs_live_of_queue", "sqlite"
)
_OF_USER: Final = _OF_LIVE.where(_jobs.c.user == bindparam("of")).with_hint(
    _jobs, "INDEXED BY jobs_live_of_user", "sqlite"
)
_OF_JOBS: Final = select(_seconds()).where(_jobs.c.id.in_(bindparam("ids", expanding=True)))
