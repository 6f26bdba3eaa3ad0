"""Small named records that OpenPAI's clients store, such as launch requests and templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from sqlalchemy import BigInteger, cast, delete, func, insert, select, update

from corral.compat.openpai.tables.schema import client_records
from corral.kernel.errors import Conflict
from corral.model.accounts import AuditWrite
from corral.store.audit import write_audit
from corral.store.database import Database, rows
from corral.store.rows import clean
from corral.store.writer import Transaction

_records = client_records
MAX_RECORDS: Final = 100_000
"""Records of one kind at most; a list shows no more."""


BESIDE: Final = ("tasks", "deleteOnParentDeleted", "stopOnParentStopped", "line", "text")
"""Names of the short texts that may accompany a record."""


class KeyValue(msgspec.Struct, frozen=True):
    """One stored record; `body` is its JSON text."""

    kind: str
    name: str
    owner: str
    body: str
    created_at: float
    changed_at: float
    beside: Mapping[str, str] = {}
    """Short texts by name, readable without the body. A change replaces all of them."""


Change = Callable[[KeyValue | None], KeyValue | None]
"""Maps the stored record (None: none) to the new one (None: delete). Runs in the transaction; may raise to refuse."""


class KeyValues:
    """Records of clients."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def key_value(self, kind: str, name: str) -> KeyValue | None:
        """One record; None when it does not exist."""
        query = select(_records).where(_records.c.kind == kind, _records.c.name == clean(name))
        found = await self._database.read(lambda connection: rows(connection, query))
        return _key_value(found[0]) if found else None

    async def key_values(self, kind: str, owner: str = "") -> list[KeyValue]:
        """All records of one kind by name, or only those of one owner."""
        query = select(_records).where(_records.c.kind == kind).order_by(_records.c.name).limit(MAX_RECORDS)
        if owner:
            query = query.where(_records.c.owner == clean(owner))
        return [_key_value(row) for row in await self._database.read(lambda connection: rows(connection, query))]

    async def beside(
        self, kind: str, part: str, *, text: str | None = None, words: tuple[str, ...] = (), words_in: str = ""
    ) -> list[tuple[str, str]]:
        """The names and texts of all records of one kind that have a short text; with `text`, only those equal to it.

        With `words`, only records whose other short text, `words_in`, contains each word.
        """
        query = (
            select(_records.c.name, _records.c.body)
            .where(_records.c.kind == _part(kind, part))
            .order_by(_records.c.name)
        )
        if text is not None:
            query = query.where(_records.c.body == clean(text))
        if words:
            other = _records.alias()
            has = (other.c.body.contains(clean(word), autoescape=True) for word in words)
            query = query.where(
                _records.c.name.in_(select(other.c.name).where(other.c.kind == _part(kind, words_in), *has))
            )
        found = await self._database.read(lambda connection: rows(connection, query.limit(MAX_RECORDS)))
        return [(row[0], row[1]) for row in found]

    async def sum_beside(self, kind: str, part: str, *, but: str) -> int:
        """The sum of a short text over all records of one kind except `but`; the texts are whole numbers."""
        total = func.coalesce(func.sum(cast(_records.c.body, BigInteger)), 0)
        query = select(total).where(_records.c.kind == _part(kind, part), _records.c.name != clean(but))
        return await self._database.read(lambda connection: int(connection.execute(query).scalar_one()))

    async def change_key_value(
        self,
        kind: str,
        name: str,
        change: Change,
        *,
        most: int = MAX_RECORDS,
        most_of_owner: int = MAX_RECORDS,
        audit: AuditWrite | None = None,
    ) -> KeyValue | None:
        """Change one record atomically; returns the new record.

        Raises the errors of `change`, Conflict when the kind or its owner has too many records; nothing is changed
        then.
        """

        def run(transaction: Transaction) -> KeyValue | None:
            where = (_records.c.kind == kind, _records.c.name == clean(name))
            row = transaction.read(select(_records).where(*where)).first()
            known = None if row is None else _key_value(row)
            wanted = change(known)
            if wanted is None:
                transaction.write(delete(_records).where(*where))
            elif known is None:
                _check_room(transaction, wanted, most, most_of_owner)
                transaction.write(insert(_records), _row(wanted))
            else:
                transaction.write(update(_records).where(*where).values(**_row(wanted)))
            _write_beside(transaction, kind, name, wanted)
            write_audit(transaction, audit)
            return wanted

        return await self._database.write(run)


def _check_room(transaction: Transaction, wanted: KeyValue, most: int, most_of_owner: int) -> None:
    there = select(_records.c.name).where(_records.c.kind == wanted.kind)
    own = there.where(_records.c.owner == clean(wanted.owner))
    for query, number, whose in ((there, most, "There are"), (own, most_of_owner, "You have")):
        if transaction.read(query.offset(number - 1).limit(1)).first() is not None:
            raise Conflict("too-many-kept", f"{whose} {number} of these already, and no more are taken.")


def _part(kind: str, part: str) -> str:
    return f"{kind}:{part}"


def _write_beside(transaction: Transaction, kind: str, name: str, wanted: KeyValue | None) -> None:
    parts = _records.c.kind.in_([_part(kind, part) for part in BESIDE])
    transaction.write(delete(_records).where(parts, _records.c.name == clean(name)))
    if wanted is not None:
        for part, text in wanted.beside.items():
            transaction.write(
                insert(_records), _row(msgspec.structs.replace(wanted, kind=_part(kind, part), body=text))
            )


def _row(key_value: KeyValue) -> dict[str, object]:
    return {
        "kind": key_value.kind,
        "name": clean(key_value.name),
        "owner": clean(key_value.owner),
        "body": clean(key_value.body),
        "created_at": key_value.created_at,
        "changed_at": key_value.changed_at,
    }


def _key_value(row: object) -> KeyValue:
    return KeyValue(**{name: getattr(row, name) for name in KeyValue.__struct_fields__ if name != "beside"})
