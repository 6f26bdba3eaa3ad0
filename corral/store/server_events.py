"""Events of the server itself, which belong to no job, such as changes of its health."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, delete, select

from corral.model.records import EventRecord, Page
from corral.model.store_writes import ServerEvent
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.job_views import event_record
from corral.store.paging import after, bounded, read_cursor, write_cursor
from corral.store.rows import add_events, event_row
from corral.store.writer import Transaction

_OF_SERVER: Final[tuple[ColumnElement[bool], ...]] = (
    tables.events.c.job == "",
    tables.events.c.kind.startswith("server."),
)
_KEPT: Final = 1_000
"""Events of the server that are kept."""


class ServerEvents(Database):
    """The events of the server."""

    async def tell_of_server(self, told: Sequence[ServerEvent]) -> None:
        """Store events of the server, and delete all but the latest thousand."""
        made = [event_row("", each.at, each.kind, each.message, actor=each.actor) for each in told]
        table = tables.events
        oldest = select(table.c.seq).where(*_OF_SERVER).order_by(table.c.seq.desc()).offset(_KEPT).limit(1)

        def run(transaction: Transaction) -> None:
            add_events(transaction, made)
            surplus = transaction.read(oldest).scalar()
            if surplus is not None:
                transaction.write(delete(table).where(*_OF_SERVER, table.c.seq <= surplus))
            transaction.ring("front")

        await self.write(run)

    async def events_of_server(self, *, limit: int = 100, after_cursor: str = "") -> Page[EventRecord]:
        """One page of the server's events, newest first.

        Raises InvalidInput for an invalid cursor.
        """
        table = tables.events
        query = select(table).where(*_OF_SERVER).order_by(table.c.seq.desc()).limit(bounded(limit) + 1)
        key = read_cursor(after_cursor, (int,))
        if key is not None:
            query = query.where(after([(table.c.seq, True)], key))
        found = await self.read(lambda connection: rows(connection, query))
        shown = [event_record(row) for row in found[: bounded(limit)]]
        return Page(shown, write_cursor((shown[-1].seq,)) if len(found) > len(shown) else None)
