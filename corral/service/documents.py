"""Why: the cluster is configured while it is in use, so a change is checked whole, against what runs, before it is stored.

A file of documents is applied all or nothing. What it says together with the documents that are there already is worked
out here; whether it would break a guarantee that somebody relies on now is asked of control.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.kernel.kinds import KINDS, VIRTUAL_CLUSTER, kind_of
from corral.model.accounts import AuditWrite
from corral.model.configuration import (
    Configuration,
    canonical,
    read_configuration,
    read_revision,
    to_document,
)
from corral.model.documents import (
    Applied,
    AppliedDocument,
    DocumentChange,
    DocumentDiff,
    DocumentRevision,
    Documents,
    DocumentSummary,
    DocumentView,
    GuaranteeFinding,
)
from corral.model.records import Page, rfc3339
from corral.service.actor import Actor
from corral.service.base import ServiceBase
from corral.service.comparing import as_yaml, compare
from corral.service.rules import Resource
from corral.spec.documents import Document, identity, load_document
from corral.spec.errors import did_you_mean, path_text
from corral.store.documents import DOCUMENTS_CHANGED

CHECK: Final = "/configuration/check"
"""Where control says which guarantees a configuration would break."""
_TRIES: Final = 3
_FINDINGS: Final = tuple[GuaranteeFinding, ...]
_MAX_NOTE: Final = 500
_NOTHING: Final = "nothing"
Guards = Mapping[tuple[str, str], int]


class Configuring(ServiceBase):
    """Cluster, Queue and Policy documents: read, compare, apply, roll back, delete."""

    async def documents(
        self, actor: Actor, *, kind: str = "", limit: int = 200, after: str = ""
    ) -> Page[DocumentSummary]:
        """One page of the documents as they are now.

        Raises InvalidInput for a kind that is none.
        """
        await self.check(actor, "document.read", Resource("document"))
        page = await self.store.documents(kind=_kind(kind) if kind else "", limit=limit, after_cursor=after)
        return Page([_summary(each) for each in page.items], page.next)

    async def document(self, actor: Actor, kind: str, name: str, revision: int | None = None) -> DocumentView:
        """A revision of a document, the current one if unsaid.

        Raises NotFound, InvalidInput for a kind that is none.
        """
        await self.check(actor, "document.read", Resource("document", f"{kind}/{name}"))
        return _view(await self._revision(_kind(kind), name, revision))

    async def document_history(
        self, actor: Actor, kind: str, name: str, *, limit: int = 100, after: str = ""
    ) -> Page[DocumentSummary]:
        """One page of a document's revisions, the latest first.

        Raises NotFound when it never was there.
        """
        await self.check(actor, "document.read", Resource("document", f"{kind}/{name}"))
        page = await self.store.document_history(_kind(kind), name, limit=limit, after_cursor=after)
        if not page.items and not after:
            raise _not_there(_kind(kind), name)
        return Page([_summary(each) for each in page.items], page.next)

    async def document_diff(
        self, actor: Actor, kind: str, name: str, *, before: int | None = None, after: int | None = None
    ) -> DocumentDiff:
        """What differs between two revisions; if unsaid `after` is the latest and `before` the one before it.

        Raises NotFound.
        """
        await self.check(actor, "document.read", Resource("document", f"{kind}/{name}"))
        later = await self._revision(_kind(kind), name, after, deleted=True)
        first = later.revision - 1 if before is None else before
        earlier = await self._revision(later.kind, name, first, deleted=True) if first else None
        before_name = f"{later.kind}/{later.name} revision {first}" if first else _NOTHING
        after_name = f"{later.kind}/{later.name} revision {later.revision}"
        shown = compare(_text(earlier), _text(later), before_name, after_name)
        return DocumentDiff(later.kind, name, first, later.revision, shown)

    async def compare_documents(self, actor: Actor, text: bytes | str, *, filename: str = "the file") -> Applied:
        """What applying a file would change, without asking whether it may be.

        Raises SpecError with every problem of the file.
        """
        await self.check(actor, "document.read", Resource("document"))
        changes = _changes(load_document(text, filename=filename), "", {})
        now = await self.store.all_documents()
        return Applied(_outcomes(now, changes), dry_run=True)

    async def apply_documents(
        self,
        actor: Actor,
        text: bytes | str,
        *,
        filename: str = "the file",
        only: tuple[str, str] | None = None,
        guard: int | None = None,
        note: str = "",
        dry_run: bool = False,
        preempt: bool = False,
    ) -> Applied:
        """Store every document of a file as a new revision, or none of them.

        With `only` the file must hold that document (kind and name) alone, and `guard` is the revision it must be at.
        Raises SpecError with every problem of the file, Conflict `guarantee-broken` with the numbers, `queue-in-use`,
        `revision-changed`, and Unavailable when control does not say whether a guarantee would be broken.
        """
        loaded = load_document(text, filename=filename)
        guards: dict[tuple[str, str], int] = {}
        if only is not None:
            _check_only(loaded, (_kind(only[0]), only[1]))
            guards = {} if guard is None else {(_kind(only[0]), only[1]): guard}
        changes = _changes(loaded, note, guards)
        return await self._change(actor, "document.apply", changes, dry_run=dry_run, preempt=preempt)

    async def roll_back_document(
        self,
        actor: Actor,
        kind: str,
        name: str,
        revision: int,
        *,
        guard: int | None = None,
        note: str = "",
        dry_run: bool = False,
        preempt: bool = False,
    ) -> Applied:
        """Store an earlier revision again, as a new one.

        Raises like `apply_documents`, and NotFound for a revision that is not there.
        """
        await self.check(actor, "document.rollback", Resource("document", f"{kind}/{name}"), revision=revision)
        found = await self._revision(_kind(kind), name, revision, deleted=True)
        said = _noted(note or f"rolled back to revision {revision}")
        change = DocumentChange(found.kind, name, None if found.deleted else found.doc, guard, said)
        return await self._change(actor, "document.rollback", [change], dry_run=dry_run, preempt=preempt)

    async def delete_document(
        self,
        actor: Actor,
        kind: str,
        name: str,
        *,
        guard: int | None = None,
        note: str = "",
        dry_run: bool = False,
        preempt: bool = False,
    ) -> Applied:
        """Delete a document; its revisions stay.

        Raises like `apply_documents`, and NotFound when it is not there.
        """
        await self.check(actor, "document.delete", Resource("document", f"{kind}/{name}"))
        found = await self._revision(_kind(kind), name, None)
        change = DocumentChange(found.kind, name, None, guard, _noted(note))
        return await self._change(actor, "document.delete", [change], dry_run=dry_run, preempt=preempt)

    async def _change(
        self, actor: Actor, action: str, changes: Sequence[DocumentChange], *, dry_run: bool, preempt: bool
    ) -> Applied:
        names = ", ".join(f"{change.kind}/{change.name}" for change in changes)
        decision = await self.check(actor, action, Resource("document", names), dry_run=dry_run)
        for tried in range(_TRIES):
            now = await self.store.all_documents()
            outcomes = _outcomes(now, changes)
            configured = read_configuration(_after(now, changes), now.change)
            idle = all(each.action == "unchanged" for each in outcomes)
            findings = () if idle else await self._findings(now, configured, changes)
            _refuse_broken(findings, preempt=preempt)
            if dry_run:
                return Applied(outcomes, dry_run=True, findings=findings)
            lines = [
                self.line(
                    actor, action, Resource("document", f"{change.kind}/{change.name}"), decision, preempt=preempt
                )
                for change in changes
            ]
            try:
                stored = await self._store(actor, changes, configured, lines, preempt=preempt)
            except Conflict as error:
                if error.code != DOCUMENTS_CHANGED or tried == _TRIES - 1:
                    raise
                continue
            numbers = {(each.kind, each.name): each.revision for each in stored}
            done = (
                msgspec.structs.replace(each, revision=numbers.get((each.kind, each.name), each.revision))
                for each in outcomes
            )
            return Applied(tuple(done), findings=findings)
        raise AssertionError("the last try returns or raises")

    async def _store(
        self,
        actor: Actor,
        changes: Sequence[DocumentChange],
        configured: Configuration,
        audit: Sequence[AuditWrite],
        *,
        preempt: bool,
    ) -> list[DocumentRevision]:
        return await self.store.put_documents(
            changes,
            actor=actor.user,
            at=self.clock.now(),
            seen=configured.change,
            queues=configured.queue_records(),
            audit=audit,
            preempt=preempt,
        )

    async def _findings(
        self, now: Documents, configured: Configuration, changes: Sequence[DocumentChange]
    ) -> tuple[GuaranteeFinding, ...]:
        """The guarantees that the configuration would break."""
        found = [
            GuaranteeFinding(f"{path_text(path)}: {said}", _queue_in(path)) for path, said in configured.findings()
        ]
        if found:
            return tuple(found)
        if all(change.kind == "Storage" for change in changes):
            return ()
        await self._check_queues_in_use(read_configuration(now.revisions), configured)
        documents = [json.loads(each.doc) for each in _after(now, changes)]
        return msgspec.convert(await self.door.ask(CHECK, {"documents": documents}), _FINDINGS)

    async def _check_queues_in_use(self, before: Configuration, after: Configuration) -> None:
        gone = sorted(before.queues.keys() - after.queues.keys())
        if not gone:
            return
        counts = await self.store.count_jobs()
        for name in gone:
            live = sum(counts.get(name, {}).get(phase, 0) for phase in ("waiting", "starting", "running", "stopping"))
            if live:
                raise Conflict(
                    "queue-in-use",
                    f"Jobs of the queue {name} are not over yet ({live}); wait for them, or stop them "
                    f"(corral ls --queue {name} --live -o name | xargs corral stop).",
                )

    async def _revision(self, kind: str, name: str, revision: int | None, *, deleted: bool = False) -> DocumentRevision:
        found = await self.store.document(kind, name, revision)
        if found is None and revision is not None and await self.store.document(kind, name) is not None:
            raise NotFound(
                "revision-not-found",
                f"{kind}/{name} has no revision {revision}; `corral history {kind}/{name}` lists them.",
            )
        if found is None or (found.deleted and not deleted and revision is None):
            raise _not_there(kind, name)
        return found


def _kind(word: str) -> str:
    kind = kind_of(word)
    if not kind:
        near = did_you_mean(word, (*KINDS, VIRTUAL_CLUSTER))
        raise InvalidInput("unknown-kind", f'There is no kind "{word[:60]}"{near}{"" if near.endswith("?") else "."}')
    return kind


def _not_there(kind: str, name: str) -> NotFound:
    return NotFound(
        "document-not-found", f"There is no {kind}/{name[:100]}; `corral get {kind.lower()}` lists those there are."
    )


def _noted(note: str) -> str:
    if len(note) > _MAX_NOTE:
        raise InvalidInput("note-too-long", f"A note has at most {_MAX_NOTE} characters.")
    return note


def _changes(loaded: Sequence[Document], note: str, guards: Guards) -> list[DocumentChange]:
    named = [(*identity(each), canonical(each)) for each in loaded]
    return [DocumentChange(kind, name, doc, guards.get((kind, name)), _noted(note)) for kind, name, doc in named]


def _check_only(loaded: Sequence[Document], wanted: tuple[str, str]) -> None:
    names = [identity(each) for each in loaded]
    if names != [wanted]:
        there = ", ".join("/".join(name) for name in names)
        raise InvalidInput(
            "other-document",
            f"The address is that of {'/'.join(wanted)}, and the body holds {there}; send only the former.",
        )


def _after(now: Documents, changes: Sequence[DocumentChange]) -> list[DocumentRevision]:
    """The documents as the changes leave them."""
    there = {(each.kind, each.name): each for each in now.revisions}
    for change in changes:
        there.pop((change.kind, change.name), None)
        if change.doc is not None:
            there[change.kind, change.name] = DocumentRevision(change.kind, change.name, 0, change.doc, 0.0, "")
    return [there[key] for key in sorted(there)]


def _outcomes(now: Documents, changes: Sequence[DocumentChange]) -> tuple[AppliedDocument, ...]:
    """What the changes do to each document, before they are stored."""
    there = {(each.kind, each.name): each for each in now.revisions}
    outcomes = []
    for change in changes:
        last = there.get((change.kind, change.name))
        before, after = _text(last), _yaml(change.kind, change.name, change.doc) if change.doc else ""
        if (last.doc if last else None) == change.doc:
            action = "unchanged"
        else:
            action = "deleted" if change.doc is None else "changed" if last else "created"
        number = last.revision if last else 0
        what = f"{change.kind}/{change.name}"
        shown = compare(before, after, f"{what} revision {number}" if number else _NOTHING, what)
        outcomes.append(AppliedDocument(change.kind, change.name, number, action, shown))
    return tuple(outcomes)


def _refuse_broken(findings: Sequence[GuaranteeFinding], *, preempt: bool) -> None:
    refused = [each for each in findings if not (preempt and each.preemptible)]
    if not refused:
        return
    hint = " Apply it with --preempt to let those jobs yield." if all(each.preemptible for each in refused) else ""
    raise Conflict(
        "guarantee-broken",
        "The change would break a guarantee. " + "; ".join(each.message for each in refused[:10]) + "." + hint,
        findings=[msgspec.to_builtins(each) for each in refused[:100]],
    )


def _queue_in(path: Sequence[str | int]) -> str:
    return str(path[1]) if len(path) > 1 and path[0] == "queues" else ""


def _summary(revision: DocumentRevision) -> DocumentSummary:
    return DocumentSummary(
        revision.kind,
        revision.name,
        revision.revision,
        rfc3339(revision.at),
        revision.actor,
        revision.note,
        revision.deleted,
    )


def _view(revision: DocumentRevision) -> DocumentView:
    summary = _summary(revision)
    document: dict[str, Any] = {} if revision.deleted else to_document(read_revision(revision))
    fields = {name: getattr(summary, name) for name in summary.__struct_fields__}
    return DocumentView(**fields, document=document, text=as_yaml(document) if document else "")


def _text(revision: DocumentRevision | None) -> str:
    return "" if revision is None or revision.deleted else _yaml(revision.kind, revision.name, revision.doc)


def _yaml(kind: str, name: str, doc: str) -> str:
    return as_yaml(to_document(read_revision(DocumentRevision(kind, name, 0, doc, 0.0, ""))))
