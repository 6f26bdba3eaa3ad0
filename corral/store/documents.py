"""Store Cluster, Queue and Policy documents with every revision, and tell control about each change.

`document_revisions` only grows; `documents` names the current revision of each document that was not deleted. A change
and the resulting queues are stored in one transaction, so that no submission sees one without the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import bindparam, delete, exists, insert, select

from corral.kernel.errors import Conflict
from corral.model.accounts import AuditWrite, QueueRecord
from corral.model.document_revisions import CONFIGURED, DocumentChange, DocumentRevision, Documents
from corral.model.records import Page
from corral.store import tables
from corral.store.audit import write_audit
from corral.store.database import Database, rows
from corral.store.paging import after, bounded, read_cursor, write_cursor
from corral.store.rows import add_events, clean, encode, event_row, put
from corral.store.writer import Transaction

_revisions, _current = tables.document_revisions, tables.documents
DOCUMENTS_CHANGED: Final = "documents-changed"
"""The error code for a change that is based on outdated documents."""
_COUNTER: Final = "document"
_JOINED: Final = select(_revisions).join(
    _current,
    (_current.c.kind == _revisions.c.kind)
    & (_current.c.name == _revisions.c.name)
    & (_current.c.revision == _revisions.c.revision),
)
_later = _revisions.alias()
_GONE: Final = select(_revisions).where(
    _revisions.c.deleted.is_(True),
    ~exists().where(
        _later.c.kind == _revisions.c.kind,
        _later.c.name == _revisions.c.name,
        _later.c.revision > _revisions.c.revision,
    ),
)
_THIS: Final = (_revisions.c.kind == bindparam("k"), _revisions.c.name == bindparam("n"))
_LAST: Final = select(_revisions).where(*_THIS).order_by(_revisions.c.revision.desc()).limit(1)
_CHANGE: Final = select(tables.counters.c.value).where(tables.counters.c.name == _COUNTER)
_FORGET: Final = delete(_current).where(_current.c.kind == bindparam("k"), _current.c.name == bindparam("n"))


class DocumentStore(Database):
    """Cluster, Queue and Policy documents with all their revisions."""

    async def put_documents(
        self,
        changes: Sequence[DocumentChange],
        *,
        actor: str,
        at: float,
        seen: int | None = None,
        queues: Sequence[QueueRecord] | None = None,
        audit: Sequence[AuditWrite] = (),
        preempt: bool = False,
    ) -> list[DocumentRevision]:
        """Store all of `changes` or none; returns the current revision of each, in their order.

        A change that leaves its document as it is stores nothing. `seen` is the change number of the documents that the
        changes are based on. `queues`, when given, replaces all queues (also without any changes). With `preempt`
        control preempts the jobs that exceed their queues' new limits. Raises Conflict `revision-changed` when a guard
        does not hold, `documents-changed` when `seen` is outdated.
        """

        def run(transaction: Transaction) -> list[DocumentRevision]:
            if seen is not None and transaction.current(_COUNTER) != seen:
                raise Conflict(
                    DOCUMENTS_CHANGED, "The configuration has changed since it was read; read it again and repeat."
                )
            before = [_last(transaction, change.kind, change.name) for change in changes]
            for change, last in zip(changes, before, strict=True):
                _check_guard(change, last)
            new = [_next(change, last, actor, at) for change, last in zip(changes, before, strict=True)]
            added = [revision for revision in new if revision is not None]
            if queues is not None and (added or not changes):
                write_queues(transaction, queues)
            if added:
                _store(transaction, added, audit, preempt)
            now = (made or last for made, last in zip(new, before, strict=True))
            return [each for each in now if each is not None]

        stored = await self.write(run)
        self.admission_changed()
        return stored

    async def all_documents(self) -> Documents:
        """The current revision of every document, by kind and name."""
        query = _JOINED.order_by(_revisions.c.kind, _revisions.c.name)

        def run(connection: Any) -> Documents:
            change = connection.execute(_CHANGE).scalar_one()
            return Documents(int(change), tuple(_revision(row) for row in rows(connection, query)))

        return await self.read(run)

    async def documents(
        self, *, kind: str = "", deleted: bool = False, limit: int = 200, after_cursor: str = ""
    ) -> Page[DocumentRevision]:
        """One page of the current documents (of one kind, or of all), by kind and name.

        `deleted`: of those that were deleted instead, each at the revision that deleted it.
        """
        query = (_GONE if deleted else _JOINED).order_by(_revisions.c.kind, _revisions.c.name).limit(bounded(limit) + 1)
        if kind:
            query = query.where(_revisions.c.kind == kind)
        key = read_cursor(after_cursor, (str, str))
        if key is not None:
            query = query.where(after([(_revisions.c.kind, False), (_revisions.c.name, False)], key))
        found = [_revision(row) for row in await self.read(lambda connection: rows(connection, query))]
        shown = found[: bounded(limit)]
        more = write_cursor((shown[-1].kind, shown[-1].name)) if len(found) > len(shown) else None
        return Page(shown, more)

    async def document(self, kind: str, name: str, revision: int | None = None) -> DocumentRevision | None:
        """A revision of a document, by default the last (which may be its deletion); None when it does not exist."""
        query = _LAST if revision is None else _LAST.where(_revisions.c.revision == revision)
        row = await self.read(lambda connection: connection.execute(query, {"k": kind, "n": name}).first())
        return None if row is None else _revision(row)

    async def document_history(
        self, kind: str, name: str, *, limit: int = 100, after_cursor: str = ""
    ) -> Page[DocumentRevision]:
        """One page of a document's revisions, newest first."""
        query = select(_revisions).where(*_THIS).order_by(_revisions.c.revision.desc()).limit(bounded(limit) + 1)
        key = read_cursor(after_cursor, (int,))
        if key is not None:
            query = query.where(_revisions.c.revision < key[0])
        found = await self.read(lambda connection: rows(connection, query, {"k": kind, "n": name}))
        shown = [_revision(row) for row in found[: bounded(limit)]]
        return Page(shown, write_cursor((shown[-1].revision,)) if len(found) > len(shown) else None)


def _last(transaction: Transaction, kind: str, name: str) -> DocumentRevision | None:
    row = transaction.read(_LAST, {"k": kind, "n": name}).first()
    return None if row is None else _revision(row)


def _check_guard(change: DocumentChange, last: DocumentRevision | None) -> None:
    current = 0 if last is None or last.deleted else last.revision
    if change.guard is None or change.guard == current:
        return
    what = f"is at revision {current}" if current else "is not there"
    expected = f"revision {change.guard}" if change.guard else "nothing"
    raise Conflict(
        "revision-changed",
        f"{change.kind}/{change.name} {what}, and {expected} was expected; look at the difference and apply again.",
        revision=current,
    )


def _next(change: DocumentChange, last: DocumentRevision | None, actor: str, at: float) -> DocumentRevision | None:
    """The revision that a change creates, None when it changes nothing."""
    gone = last is None or last.deleted
    if change.doc is None and gone:
        return None
    if last is not None and not last.deleted and change.doc == last.doc:
        return None
    number = 1 if last is None else last.revision + 1
    doc = change.doc or ""
    return DocumentRevision(
        change.kind, change.name, number, doc, at, actor, clean(change.note), deleted=change.doc is None
    )


def _store(
    transaction: Transaction, added: Sequence[DocumentRevision], audit: Sequence[AuditWrite], preempt: bool
) -> None:
    transaction.take(_COUNTER)
    for made in added:
        transaction.write(insert(_revisions), _row(made))
        if made.deleted:
            transaction.write(_FORGET, {"k": made.kind, "n": made.name})
        else:
            put(transaction, _current, [{"kind": made.kind, "name": made.name, "revision": made.revision}])
    add_events(transaction, [_event(made, preempt) for made in added])
    for line in audit:
        write_audit(transaction, line)
    transaction.ring("control")
    transaction.ring("front")


def write_queues(transaction: Transaction, queues: Sequence[QueueRecord]) -> None:
    """Replace all queues by these."""
    transaction.write(delete(tables.queues))
    if queues:
        transaction.write(insert(tables.queues), [{"name": each.name, "doc": encode(each.doc)} for each in queues])


def _event(made: DocumentRevision, preempt: bool) -> dict[str, Any]:
    what = "deleted" if made.deleted else "changed" if made.revision > 1 else "made"
    message = f"{made.actor} {what} {made.kind}/{made.name} (revision {made.revision})"
    data: dict[str, object] = {"kind": made.kind, "name": made.name, "revision": made.revision}
    if preempt:
        data["preempt"] = True
    return event_row("", made.at, CONFIGURED, message, actor=made.actor, data=data, intent=True)


def _row(made: DocumentRevision) -> dict[str, Any]:
    return {
        "kind": made.kind,
        "name": made.name,
        "revision": made.revision,
        "doc": made.doc,
        "at": made.at,
        "actor": made.actor,
        "note": made.note,
        "deleted": made.deleted,
    }


def _revision(row: Any) -> DocumentRevision:
    return DocumentRevision(row.kind, row.name, row.revision, row.doc, row.at, row.actor, row.note, row.deleted)
