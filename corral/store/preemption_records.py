"""Store preemption receipts, lending ledgers, past usage and cordons.

Users write only cordons; control writes the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from sqlalchemy import delete, or_, select

from corral.kernel.ids import JobId
from corral.model.accounts import AuditWrite
from corral.model.cordons import CORDONS_CHANGED, Cordon
from corral.model.queues import QueueUsage, UserUsage
from corral.model.receipts import LedgerEntry, Receipt
from corral.model.records import Page
from corral.store import tables
from corral.store.audit import write_audit
from corral.store.database import Database, rows
from corral.store.paging import after, bounded, read_cursor, write_cursor
from corral.store.rows import add_events, clean, encode, event_row, put
from corral.store.writer import Transaction

_receipts, _ledger, _cordons = tables.receipts, tables.ledger, tables.cordons
_usage, _user_usage = tables.queue_usage, tables.user_usage
_RECEIPT: Final = msgspec.json.Decoder(Receipt)
_USAGE: Final = msgspec.json.Decoder(QueueUsage)
_USER_USAGE: Final = msgspec.json.Decoder(UserUsage)
_CORDON: Final = msgspec.json.Decoder(Cordon)


class PreemptionRecords(Database):
    """Receipts, ledgers, past usage and cordons."""

    async def receipts(
        self, *, job: str = "", queue: str = "", since: float | None = None, limit: int = 100, after_cursor: str = ""
    ) -> Page[Receipt]:
        """One page of receipts, newest first: of one job, of a queue that yielded or caused it, since a time."""
        table = _receipts
        order = (table.c.at, table.c.job, table.c.number)
        query = select(table.c.doc, *order).order_by(*(column.desc() for column in order)).limit(bounded(limit) + 1)
        if job:
            query = query.where(table.c.job == job)
        if queue:
            query = query.where(or_(table.c.queue == queue, table.c.by_queue == queue))
        if since is not None:
            query = query.where(table.c.at >= since)
        key = read_cursor(after_cursor, (float, str, int))
        if key is not None:
            query = query.where(after([(column, True) for column in order], key))
        found = await self.read(lambda connection: rows(connection, query))
        shown = found[: bounded(limit)]
        more = write_cursor((shown[-1].at, shown[-1].job, shown[-1].number)) if len(found) > len(shown) else None
        return Page([_RECEIPT.decode(row.doc) for row in shown], more)

    async def open_receipts(self) -> list[Receipt]:
        """The receipts of jobs that have neither come back nor ended."""
        query = select(_receipts.c.doc).where(~_receipts.c.closed).order_by(_receipts.c.job, _receipts.c.number)
        return [_RECEIPT.decode(row.doc) for row in await self.read(lambda connection: rows(connection, query))]

    async def ledger(self, queue: str = "") -> list[LedgerEntry]:
        """The loans between queues; with `queue`, only those in which it lends or borrows."""
        query = select(_ledger).order_by(_ledger.c.lender, _ledger.c.borrower)
        if queue:
            query = query.where(or_(_ledger.c.lender == queue, _ledger.c.borrower == queue))
        found = await self.read(lambda connection: rows(connection, query))
        return [LedgerEntry(r.lender, r.borrower, r.device_seconds, r.device_millis, r.since, r.at) for r in found]

    async def usage(self) -> list[QueueUsage]:
        """The past usage of queues, by name."""
        query = select(_usage.c.doc).order_by(_usage.c.queue)
        return [_USAGE.decode(row.doc) for row in await self.read(lambda connection: rows(connection, query))]

    async def user_usage(self) -> list[UserUsage]:
        """The past usage of the users of queues, by queue and name."""
        query = select(_user_usage.c.doc).order_by(_user_usage.c.queue, _user_usage.c.user)
        return [_USER_USAGE.decode(row.doc) for row in await self.read(lambda connection: rows(connection, query))]

    async def cordons(self) -> dict[str, Cordon]:
        """Cordons by node."""
        query = select(_cordons).order_by(_cordons.c.node)
        found = await self.read(lambda connection: rows(connection, query))
        return {row.node: _CORDON.decode(row.doc) for row in found}

    async def put_cordon(self, cordon: Cordon, *, audit: AuditWrite | None = None) -> None:
        """Cordon a node, or change its cordon, and wake control."""
        message = f"{cordon.node} is {cordon.reason}"
        data: dict[str, object] = {"node": cordon.node, "drain": str(cordon.drain)}

        def run(transaction: Transaction) -> None:
            put(transaction, _cordons, [{"node": cordon.node, "doc": encode(cordon)}])
            _tell(transaction, cordon.by, cordon.at, message, data, audit)

        await self.write(run)

    async def remove_cordon(self, node: str, *, actor: str, at: float, audit: AuditWrite | None = None) -> bool:
        """Uncordon a node and wake control; False when it was not cordoned."""

        def run(transaction: Transaction) -> bool:
            if not transaction.write(delete(_cordons).where(_cordons.c.node == node)).rowcount:
                return False
            _tell(transaction, actor, at, f"{node} takes tasks again, by {actor}", {"node": node}, audit)
            return True

        return await self.write(run)


def _tell(
    transaction: Transaction, actor: str, at: float, message: str, data: dict[str, object], audit: AuditWrite | None
) -> None:
    row = event_row("", at, CORDONS_CHANGED, message, actor=actor, data=data, intent=True)
    add_events(transaction, [row])
    write_audit(transaction, audit)
    transaction.ring("control")
    transaction.ring("front")


def write_receipts(transaction: Transaction, receipts: Sequence[Receipt]) -> None:
    """Store receipts as part of a transaction; a later one of the same job and number replaces the earlier."""
    last = {(receipt.job, receipt.number): receipt for receipt in receipts}
    put(transaction, _receipts, [_receipt_row(receipt) for receipt in last.values()])


def _receipt_row(receipt: Receipt) -> dict[str, object]:
    cleaned = msgspec.structs.replace(receipt, message=clean(receipt.message))
    return {
        "job": JobId(receipt.job),
        "number": receipt.number,
        "queue": receipt.queue,
        "by_queue": receipt.by_queue,
        "at": receipt.at,
        "closed": receipt.over or receipt.returned_at is not None,
        "doc": encode(cleaned),
    }


def write_ledger(transaction: Transaction, entries: Sequence[LedgerEntry]) -> None:
    """Store ledger entries as part of a transaction, replacing those of the same two queues."""
    last = {(entry.lender, entry.borrower): msgspec.structs.asdict(entry) for entry in entries}
    put(transaction, _ledger, list(last.values()))


def write_usage(transaction: Transaction, usages: Sequence[QueueUsage], forgotten: Sequence[str]) -> None:
    """Store the past usage of queues as part of a transaction, and delete that of `forgotten`."""
    if forgotten:
        transaction.write(delete(_usage).where(_usage.c.queue.in_(list(forgotten))))
    if usages:
        put(transaction, _usage, [{"queue": usage.queue, "doc": encode(usage)} for usage in usages])


def write_user_usage(
    transaction: Transaction, usages: Sequence[UserUsage], forgotten: Sequence[tuple[str, str]]
) -> None:
    """As `write_usage`, for users of queues; `forgotten` has pairs of queue and user."""
    for queue, user in forgotten:
        transaction.write(delete(_user_usage).where(_user_usage.c.queue == queue, _user_usage.c.user == user))
    if usages:
        found = [{"queue": each.queue, "user": each.user, "doc": encode(each)} for each in usages]
        put(transaction, _user_usage, found)
