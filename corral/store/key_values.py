"""Small named records that OpenPAI's clients store here, such as launch requests and templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from sqlalchemy import BigInteger, cast, delete, func, insert, select, update

from corral.kernel.errors import Conflict
from corral.model.accounts import AuditWrite
from corral.store import tables
from corral.store.audit import write_audit
from corral.store.database import Database, rows
from corral.store.rows import clean
from corral.store.writer import Transaction

_kept = tables.openpai_kept
MOST_KEPT: Final = 100_000
"""Records of one kind at most; a list shows no more."""


BESIDE: Final = ("tasks", "deleteOnParentDeleted", "stopOnParentStopped", "line", "text")
"""Names of the short texts that may accompany a record."""


class Kept(msgspec.Struct, frozen=True):
    """One stored record; `body` is its JSON text."""

    kind: str
    name: str
    owner: str
    body: str
    created_at: float
    changed_at: float
    beside: Mapping[str, str] = {}
    """Short texts by name, readable without the body. A change replaces all of them."""


Change = Callable[[Kept | None], Kept | None]
"""Maps the stored record (None: none) to the new one (None: delete). Runs in the transaction; may raise to refuse."""


class KeptThings(Database):
    """Records of OpenPAI's clients."""

    async def kept(self, kind: str, name: str) -> Kept | None:
        """One record; None when it does not exist."""
        query = select(_kept).where(_kept.c.kind == kind, _kept.c.name == clean(name))
        found = await self.read(lambda connection: rows(connection, query))
        return _thing(found[0]) if found else None

    async def kept_of(self, kind: str, owner: str = "") -> list[Kept]:
        """All records of one kind by name, or only those of one owner."""
        query = select(_kept).where(_kept.c.kind == kind).order_by(_kept.c.name).limit(MOST_KEPT)
        if owner:
            query = query.where(_kept.c.owner == clean(owner))
        return [_thing(row) for row in await self.read(lambda connection: rows(connection, query))]

    async def beside(
        self, kind: str, part: str, *, text: str | None = None, words: tuple[str, ...] = (), words_in: str = ""
    ) -> list[tuple[str, str]]:
        """The names and texts of all records of one kind that have a short text; with `text`, only those equal to it.

        With `words`, only records whose other short text, `words_in`, contains each word.
        """
        query = select(_kept.c.name, _kept.c.body).where(_kept.c.kind == _part(kind, part)).order_by(_kept.c.name)
        if text is not None:
            query = query.where(_kept.c.body == clean(text))
        if words:
            other = _kept.alias()
            has = (other.c.body.contains(clean(word), autoescape=True) for word in words)
            query = query.where(
                _kept.c.name.in_(select(other.c.name).where(other.c.kind == _part(kind, words_in), *has))
            )
        return [
            (row[0], row[1]) for row in await self.read(lambda connection: rows(connection, query.limit(MOST_KEPT)))
        ]

    async def sum_beside(self, kind: str, part: str, *, but: str) -> int:
        """The sum of a short text over all records of one kind except `but`; the texts are whole numbers."""
        total = func.coalesce(func.sum(cast(_kept.c.body, BigInteger)), 0)
        query = select(total).where(_kept.c.kind == _part(kind, part), _kept.c.name != clean(but))
        return await self.read(lambda connection: int(connection.execute(query).scalar_one()))

    async def keep(
        self,
        kind: str,
        name: str,
        change: Change,
        *,
        most: int = MOST_KEPT,
        most_of_owner: int = MOST_KEPT,
        audit: AuditWrite | None = None,
    ) -> Kept | None:
        """Change one record atomically; returns the new record.

        Raises the errors of `change`, Conflict when the kind or its owner has too many records; nothing is changed
        then.
        """

        def run(transaction: Transaction) -> Kept | None:
            where = (_kept.c.kind == kind, _kept.c.name == clean(name))
            row = transaction.read(select(_kept).where(*where)).first()
            known = None if row is None else _thing(row)
            wanted = change(known)
            if wanted is None:
                transaction.write(delete(_kept).where(*where))
            elif known is None:
                _check_room(transaction, wanted, most, most_of_owner)
                transaction.write(insert(_kept), _row(wanted))
            else:
                transaction.write(update(_kept).where(*where).values(**_row(wanted)))
            _write_beside(transaction, kind, name, wanted)
            write_audit(transaction, audit)
            return wanted

        return await self.write(run)


def _check_room(transaction: Transaction, wanted: Kept, most: int, most_of_owner: int) -> None:
    there = select(_kept.c.name).where(_kept.c.kind == wanted.kind)
    own = there.where(_kept.c.owner == clean(wanted.owner))
    for query, number, whose in ((there, most, "There are"), (own, most_of_owner, "You have")):
        if transaction.read(query.offset(number - 1).limit(1)).first() is not None:
            raise Conflict("too-many-kept", f"{whose} {number} of these already, and no more are taken.")


def _part(kind: str, part: str) -> str:
    return f"{kind}:{part}"


def _write_beside(transaction: Transaction, kind: str, name: str, wanted: Kept | None) -> None:
    parts = _kept.c.kind.in_([_part(kind, part) for part in BESIDE])
    transaction.write(delete(_kept).where(parts, _kept.c.name == clean(name)))
    if wanted is not None:
        for part, text in wanted.beside.items():
            transaction.write(insert(_kept), _row(msgspec.structs.replace(wanted, kind=_part(kind, part), body=text)))


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
    return Kept(**{name: getattr(row, name) for name in Kept.__struct_fields__ if name != "beside"})
