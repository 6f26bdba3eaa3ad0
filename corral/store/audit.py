"""The audit log. A change and its line (actor, rule) are stored in one transaction or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from sqlalchemy import Column, ColumnElement, insert, or_, select

from corral.model.accounts import AuditFilter, AuditRecord, AuditWrite
from corral.model.records import Page, rfc3339
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.paging import after, bounded, read_cursor, write_cursor
from corral.store.rows import clean, encode
from corral.store.writer import Transaction

_DETAIL: Final = msgspec.json.Decoder(dict[str, Any])
_ALL: Final = AuditFilter()
_INSERT: Final = insert(tables.audit)


def write_audit(transaction: Transaction, line: AuditWrite | None) -> None:
    """Add a line to the audit log as part of a transaction; None adds nothing."""
    if line is None:
        return
    row = {
        "seq": transaction.take("audit"),
        "at": line.at,
        "actor": clean(line.actor)[:200],
        "action": line.action,
        "resource": clean(line.resource)[:500],
        "rule": line.rule,
        "allowed": line.allowed,
        "detail": encode(line.detail),
    }
    transaction.write(_INSERT, row)


class Audit(Database):
    """The audit log."""

    async def add_audit(self, line: AuditWrite) -> None:
        """Add a line to the audit log."""
        await self.write(lambda transaction: write_audit(transaction, line))

    async def audit(self, wanted: AuditFilter = _ALL, *, limit: int = 100, after_cursor: str = "") -> Page[AuditRecord]:
        """One page of the wanted lines of the audit log, newest first."""
        table = tables.audit
        query = select(table).where(*_meets(wanted)).order_by(table.c.seq.desc()).limit(bounded(limit) + 1)
        key = read_cursor(after_cursor, (int,))
        if key is not None:
            query = query.where(after([(table.c.seq, True)], key))
        found = await self.read(lambda connection: rows(connection, query))
        shown = [
            AuditRecord(
                r.seq, rfc3339(r.at), r.actor, r.action, r.resource, r.rule, r.allowed, _DETAIL.decode(r.detail)
            )
            for r in found[: bounded(limit)]
        ]
        return Page(shown, write_cursor((shown[-1].seq,)) if len(found) > len(shown) else None)


def _meets(wanted: AuditFilter) -> Iterator[ColumnElement[bool]]:
    """The conditions of a filter."""
    columns = tables.audit.c
    if wanted.actor:
        yield columns.actor == clean(wanted.actor)
    if wanted.action:
        yield _is_or_begins(columns.action, wanted.action, ".")
    if wanted.resource:
        yield _is_or_begins(columns.resource, wanted.resource, ":")
    if wanted.refused:
        yield columns.allowed.is_(False)
    if wanted.begin is not None:
        yield columns.at >= wanted.begin
    if wanted.end is not None:
        yield columns.at < wanted.end


def _is_or_begins(column: Column[str], text: str, mark: str) -> ColumnElement[bool]:
    text = clean(text)
    return or_(column == text, column.startswith(text + mark, autoescape=True))
