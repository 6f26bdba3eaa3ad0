"""The filters of the list of jobs that people saved under names."""

from __future__ import annotations

from typing import Final

import msgspec
from sqlalchemy import delete, select

from corral.kernel.errors import Conflict, NotFound
from corral.model.saved_filters import MOST_FILTERS, SavedFilter
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.rows import clean, encode, put
from corral.store.writer import Transaction

_filters: Final = tables.saved_filters
_FILTER: Final = msgspec.json.Decoder(SavedFilter)


class SavedFilters(Database):
    """The saved filters of people."""

    async def filters_of(self, user: str) -> list[SavedFilter]:
        """One person's filters, by name."""
        query = select(_filters.c.filter).where(_filters.c.user == clean(user)).order_by(_filters.c.name)
        found = await self.read(lambda connection: rows(connection, query))
        return [_FILTER.decode(row.filter) for row in found]

    async def save_filter(self, user: str, saved: SavedFilter) -> None:
        """Store a filter, in the place of one of the same name.

        Raises Conflict `too-many-filters`.
        """
        names = select(_filters.c.name).where(_filters.c.user == user)

        def run(transaction: Transaction) -> None:
            stored = set(transaction.read(names).scalars())
            if saved.name not in stored and len(stored) >= MOST_FILTERS:
                message = f"There are {MOST_FILTERS} saved filters already; delete one of them first."
                raise Conflict("too-many-filters", message)
            put(transaction, _filters, [{"user": user, "name": saved.name, "filter": encode(saved)}])

        await self.write(run)

    async def forget_filter(self, user: str, name: str) -> None:
        """Delete a filter.

        Raises NotFound.
        """
        theirs = (_filters.c.user == clean(user), _filters.c.name == clean(name))

        def run(transaction: Transaction) -> None:
            if transaction.read(select(_filters.c.name).where(*theirs)).first() is None:
                raise NotFound("filter-not-found", f"There is no filter {name[:100]} of yours.")
            transaction.write(delete(_filters).where(*theirs))

        await self.write(run)
