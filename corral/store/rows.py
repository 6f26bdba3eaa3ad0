"""Convert events, facts and JSON to rows."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec
from sqlalchemy import Table, case, insert

from corral.model.records import plain
from corral.model.store_writes import FactWrite
from corral.store import tables
from corral.store.writer import Transaction


class _Spec(msgspec.Struct, rename="camel"):
    max_duration_seconds: int = 0


class _Document(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_EVENT: Final = insert(tables.events)
_DOCUMENT: Final = msgspec.json.Decoder(_Document)


def event_row(
    job: str,
    at: float,
    kind: str,
    message: str,
    *,
    actor: str = "",
    role: str = "",
    index: int = -1,
    attempt: str = "",
    data: dict[str, object] | None = None,
    intent: bool = False,
) -> dict[str, Any]:
    """One row for `add_events`, without its seq."""
    return {
        "job": job,
        "at": at,
        "kind": str(kind),
        "intent": intent,
        "actor": actor,
        "message": clean(message),
        "role": role,
        "index": index,
        "attempt": attempt,
        "data": encode(plain(data)) if data else "{}",
    }


def fact_row(write: FactWrite) -> dict[str, Any]:
    """Convert a fact to a row for `add_events`."""
    fact = write.fact
    return event_row(
        write.job,
        write.at,
        fact.kind,
        fact.message,
        actor=write.actor,
        role=fact.role,
        index=fact.index,
        attempt=fact.attempt,
        data=fact.data,
    )


def add_events(transaction: Transaction, rows: list[dict[str, Any]]) -> int:
    """Store events in the order given; returns the last seq."""
    first = transaction.take("event", len(rows))
    for offset, row in enumerate(rows):
        row["seq"] = first + offset
    transaction.write(_EVENT, rows)
    return first + len(rows) - 1


def longest_seconds(doc: str) -> int:
    """The seconds that a job may run by its canonical document; 0 is no limit."""
    return _DOCUMENT.decode(doc).spec.max_duration_seconds


def encode(value: object) -> str:
    """Encode `value` as JSON text."""
    return msgspec.json.encode(value).decode()


def clean(text: str) -> str:
    """Replace NUL characters and lone surrogates, which the databases cannot store."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def put(transaction: Transaction, table: Table, new: list[dict[str, Any]], *, known: tuple[str, ...] = ()) -> None:
    """Insert rows, replacing those with the same primary key.

    A stored text in a column of `known` is kept where the new one is empty.
    """
    transaction.write(_upsert(transaction.connection.dialect.name, table, known), new)


@cache
def _upsert(dialect: str, table: Table, known: tuple[str, ...]) -> Any:
    """Build the upsert statement for a table; only the dialect in use is imported."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as dialect_insert
    else:
        from sqlalchemy.dialects.sqlite import insert as dialect_insert  # type: ignore[assignment]
    statement: Any = dialect_insert(table)
    keys = [column.name for column in table.primary_key]
    changes = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in keys}
    for name in known:
        changes[name] = case((changes[name] == "", table.c[name]), else_=changes[name])
    return statement.on_conflict_do_update(index_elements=keys, set_=changes)
