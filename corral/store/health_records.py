"""Store the health of nodes, its history of 90 days, and the figures of validations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from sqlalchemy import delete, func, insert, or_, select

from corral.model.accounts import AuditWrite
from corral.model.health.records import HealthEntry, NodeHealth
from corral.model.records import Page
from corral.store import tables
from corral.store.audit import write_audit
from corral.store.database import Database, rows
from corral.store.paging import after, bounded, read_cursor, write_cursor
from corral.store.rows import add_events, clean, encode, event_row, put
from corral.store.writer import Transaction

KEPT_SECONDS: Final = 90 * 86_400.0
MOST_KEPT: Final = 50_000
"""Entries of the history of all nodes."""
MOVED: Final = "node.health"
"""The kind of the event that tells of a node's move from one state to another."""
_health, _history, _figures = tables.node_health, tables.health_history, tables.health_figures
_HEALTH: Final = msgspec.json.Decoder(NodeHealth)
_ENTRY: Final = msgspec.json.Decoder(HealthEntry)
_FIGURES: Final = msgspec.json.Decoder(dict[str, float])


class HealthRecords(Database):
    """The health of nodes."""

    async def node_health(self) -> list[NodeHealth]:
        """The nodes of which anything is known, by name."""
        query = select(_health.c.doc).order_by(_health.c.node)
        return [_HEALTH.decode(row.doc) for row in await self.read(lambda connection: rows(connection, query))]

    async def health_history(self, node: str, *, limit: int = 100, after_cursor: str = "") -> Page[HealthEntry]:
        """One page of a node's history, newest first.

        Raises InvalidInput for an invalid cursor.
        """
        query = select(_history).where(_history.c.node == node).order_by(_history.c.seq.desc())
        key = read_cursor(after_cursor, (int,))
        if key is not None:
            query = query.where(after([(_history.c.seq, True)], key))
        found = await self.read(lambda connection: rows(connection, query.limit(bounded(limit) + 1)))
        shown = found[: bounded(limit)]
        more = write_cursor((shown[-1].seq,)) if len(found) > len(shown) else None
        return Page([_ENTRY.decode(row.doc) for row in shown], more)

    async def keep_health(
        self, nodes: Sequence[NodeHealth], entries: Sequence[HealthEntry], *, audit: AuditWrite | None = None
    ) -> None:
        """Store what is known of nodes, and add to their history; each move of a node is also an event."""

        def run(transaction: Transaction) -> None:
            if nodes:
                put(transaction, _health, [{"node": each.node, "doc": encode(each)} for each in nodes])
            if entries:
                _add(transaction, entries)
            write_audit(transaction, audit)
            transaction.ring("front")

        await self.write(run)

    async def put_figures(self, node: str, alike: str, at: float, figures: dict[str, float]) -> None:
        """Store the figures of a node's last validation, in place of those before."""
        row = {"node": node, "alike": alike, "at": at, "figures": encode(figures)}
        await self.write(lambda transaction: put(transaction, _figures, [row]))

    async def figures_alike(self, alike: str) -> dict[str, dict[str, float]]:
        """The figures of the nodes that can be compared, by node."""
        query = select(_figures.c.node, _figures.c.figures).where(_figures.c.alike == alike).limit(1000)
        found = await self.read(lambda connection: rows(connection, query))
        return {row.node: _FIGURES.decode(row.figures) for row in found}


def _add(transaction: Transaction, entries: Sequence[HealthEntry]) -> None:
    first = (transaction.read(select(func.max(_history.c.seq))).scalar() or 0) + 1
    cleaned = [msgspec.structs.replace(each, reason=clean(each.reason)) for each in entries]
    made = [
        {"seq": first + at, "node": each.node, "at": each.at, "doc": encode(each)} for at, each in enumerate(cleaned)
    ]
    transaction.write(insert(_history), made)
    last = first + len(entries)
    oldest = max(each.at for each in entries) - KEPT_SECONDS
    transaction.write(delete(_history).where(or_(_history.c.seq < last - MOST_KEPT, _history.c.at < oldest)))
    moves = [each for each in cleaned if each.what == "moved"]
    if moves:
        add_events(transaction, [_event(each) for each in moves])


def _event(entry: HealthEntry) -> dict[str, object]:
    by = f" by {entry.by}" if entry.by else ""
    message = f"{entry.node} is {entry.after}{by}" + (f": {entry.reason}" if entry.reason else "")
    data: dict[str, object] = {"node": entry.node, "before": entry.before, "after": entry.after}
    return event_row("", entry.at, MOVED, message, actor=entry.by, data=data)
