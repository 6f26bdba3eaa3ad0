"""Why: what OpenPAI's clients keep here under names of their own, launch requests say, is small and asked for by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from sqlalchemy import delete, insert, select, update

from corral.kernel.errors import Conflict
from corral.model.accounts import AuditWrite
from corral.store import tables
from corral.store.audit import write_audit
from corral.store.database import Database, rows
from corral.store.rows import clean
from corral.store.writer import Transaction

_kept = tables.openpai_kept
MOST_KEPT: Final = 100_000
"""The things of one kind that are kept; a list shows no more."""


class Kept(msgspec.Struct, frozen=True):
    """One thing that a client keeps; `body` is its JSON text."""

    kind: str
    name: str
    owner: str
    body: str
    created_at: float
    changed_at: float


Change = Callable[[Kept | None], Kept | None]
"""From what is kept to what shall be, None being nothing; it runs inside the transaction and may refuse by raising."""


class KeptThings(Database):
    """What OpenPAI's clients keep."""

    async def kept(self, kind: str, name: str) -> Kept | None:
        """One thing."""
        query = select(_kept).where(_kept.c.kind == kind, _kept.c.name == clean(name))
        found = await self.read(lambda connection: rows(connection, query))
        return _thing(found[0]) if found else None

    async def kept_of(self, kind: str) -> list[Kept]:
        """Everything of one kind, by its name."""
        query = select(_kept).where(_kept.c.kind == kind).order_by(_kept.c.name).limit(MOST_KEPT)
        return [_thing(row) for row in await self.read(lambda connection: rows(connection, query))]

    async def keep(self, kind: str, name: str, change: Change, *, audit: AuditWrite | None = None) -> Kept | None:
        """Change one thing with nobody between the look and the write; what is kept then.

        Raises whatever `change` raises, Conflict when there are too many of the kind; then nothing is changed.
        """

        def run(transaction: Transaction) -> Kept | None:
            where = (_kept.c.kind == kind, _kept.c.name == clean(name))
            row = transaction.read(select(_kept).where(*where)).first()
            known = None if row is None else _thing(row)
            wanted = change(known)
            if wanted is None:
                transaction.write(delete(_kept).where(*where))
            elif known is None:
                _check_room(transaction, kind)
                transaction.write(insert(_kept), _row(wanted))
            else:
                transaction.write(update(_kept).where(*where).values(**_row(wanted)))
            write_audit(transaction, audit)
            return wanted

        return await self.write(run)


def _check_room(transaction: Transaction, kind: str) -> None:
    over = transaction.read(select(_kept.c.name).where(_kept.c.kind == kind).offset(MOST_KEPT - 1).limit(1)).first()
    if over is not None:
        raise Conflict("too-many-kept", f"There are {MOST_KEPT} of these already; delete some that nobody needs.")


def _row(kept: Kept) -> dict[str, object]:
    return {
        "kind": kept.kind,
        "name": clean(kept.name),
        "owner": clean(kept.owner),
        "body": clean(kept.body),
        "created_at": kept.created_at,
        "changed_at": kept.changed_at,
    }


def _thing(row: object) -> Kept:
    return Kept(**{name: getattr(row, name) for name in Kept.__struct_fields__})
