"""Read, compare, apply, roll back and delete the cluster's configuration documents.

The cluster is configured while jobs run, so each change is checked as a whole before it is stored. A file is applied
all or nothing. Contradictions between documents are found here. Control says whether the change would break a guarantee
in use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.kernel.kinds import KINDS, UNSCHEDULED, VIRTUAL_CLUSTER, kind_of
from corral.model.accounts import AuditWrite
from corral.model.document_revisions import (
    Applied,
    DocumentChange,
    DocumentDiff,
    DocumentRevision,
    Documents,
    DocumentSummary,
    DocumentView,
    GuaranteeFinding,
)
from corral.model.records import Page
from corral.model.virtual_clusters import what_becomes
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.configuration.change import (
    NOTHING,
    Planned,
    after,
    changes_in,
    difference,
    is_small,
    outcomes,
    planned,
    summary_of,
    view_of,
    with_manager_limits,
    with_virtual_clusters_gone,
)
from corral.service.context import Context
from corral.spec.errors import did_you_mean
from corral.store.documents import DOCUMENTS_CHANGED

CHECK: Final = "/configuration/check"
"""Control's address that lists the guarantees a configuration would break."""
_TRIES: Final = 3
_FINDINGS: Final = tuple[GuaranteeFinding, ...]
_MAX_NOTE: Final = 500


class ConfigurationDocuments:
    """Read and change Cluster, Queue, Policy, Storage and Prices documents."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock

    async def page(
        self, actor: Actor, *, kind: str = "", deleted: bool = False, limit: int = 200, after: str = ""
    ) -> Page[DocumentSummary]:
        """One page of the current documents, or of the `deleted` ones.

        Raises InvalidInput for an unknown kind.
        """
        await self._context.check(actor, "document.read", Resource("document"))
        of = _kind(kind) if kind else ""
        page = await self._store.documents(kind=of, deleted=deleted, limit=limit, after_cursor=after)
        return Page([summary_of(each) for each in page.items], page.next)

    async def get(self, actor: Actor, kind: str, name: str, revision: int | None = None) -> DocumentView:
        """One revision of a document; by default the current one.

        Raises NotFound, InvalidInput for an unknown kind.
        """
        await self._context.check(actor, "document.read", Resource("document", f"{kind}/{name}"))
        found = await self._revision(_kind(kind), name, revision)
        return await self._context.run_in_worker(is_small(found.doc), view_of, found)

    async def history(
        self, actor: Actor, kind: str, name: str, *, limit: int = 100, after: str = ""
    ) -> Page[DocumentSummary]:
        """One page of a document's revisions, the latest first.

        Raises NotFound when the document never existed.
        """
        await self._context.check(actor, "document.read", Resource("document", f"{kind}/{name}"))
        page = await self._store.document_history(_kind(kind), name, limit=limit, after_cursor=after)
        if not page.items and not after:
            raise _not_there(_kind(kind), name)
        return Page([summary_of(each) for each in page.items], page.next)

    async def diff(
        self, actor: Actor, kind: str, name: str, *, before: int | None = None, after: int | None = None
    ) -> DocumentDiff:
        """The difference between two revisions; by default between the latest and the one before `after`.

        Raises NotFound.
        """
        await self._context.check(actor, "document.read", Resource("document", f"{kind}/{name}"))
        later = await self._revision(_kind(kind), name, after, deleted=True)
        first = later.revision - 1 if before is None else before
        earlier = await self._revision(later.kind, name, first, deleted=True) if first else None
        before_name = f"{later.kind}/{later.name} revision {first}" if first else NOTHING
        after_name = f"{later.kind}/{later.name} revision {later.revision}"
        small = is_small(earlier.doc if earlier else "", later.doc)
        shown = await self._context.run_in_worker(small, difference, earlier, later, before_name, after_name)
        return DocumentDiff(later.kind, name, first, later.revision, shown)

    async def compare(self, actor: Actor, text: bytes | str, *, filename: str = "the file") -> Applied:
        """The changes that applying a file would make, without checking whether it may be applied.

        Raises SpecError with every problem of the file.
        """
        await self._context.check(actor, "document.read", Resource("document"))
        given, replaces = await self._context.run_in_worker(is_small(text), changes_in, text, filename)
        now = await self._store.all_documents()
        changes: Sequence[DocumentChange] = tuple(given)
        if replaces:
            changes = await self._context.run_in_worker(
                _are_small(now, changes), with_virtual_clusters_gone, now, changes
            )
        if _has_queues(changes):
            changes = await self._context.run_in_worker(_are_small(now, changes), with_manager_limits, now, changes)
        return Applied(
            await self._context.run_in_worker(_are_small(now, changes), outcomes, now, changes), dry_run=True
        )

    async def apply(
        self,
        actor: Actor,
        text: bytes | str,
        *,
        filename: str = "the file",
        only: tuple[str, str] | None = None,
        guard: int | None = None,
        guards: Mapping[tuple[str, str], int] | None = None,
        note: str = "",
        dry_run: bool = False,
        preempt: bool = False,
    ) -> Applied:
        """Store every document of a file as a new revision, or none of them.

        A HiveD configuration replaces the virtual clusters: those that it does not have are deleted. If one of them has
        jobs that are not over, the change is refused with what they would become, unless `preempt` is set. With `only`,
        the file must hold exactly that document (kind and name), and `guard` is the revision it must be at.
        `guards` has these revisions by kind and name, for a file of several documents.

        Raises SpecError with every problem of the file, Conflict `guarantee-broken` with the numbers, `queue-in-use`,
        `revision-changed`, and Unavailable when control does not say whether a guarantee would be broken.
        """
        changes, replaces = await self._context.run_in_worker(is_small(text), changes_in, text, filename)
        if only is not None:
            _check_only(changes, (_kind(only[0]), only[1]))
        guarded = _guards_of(changes, guards or {})
        if only is not None and guard is not None:
            guarded = {(each.kind, each.name): guard for each in changes}
        changes = [
            msgspec.structs.replace(each, guard=guarded.get((each.kind, each.name)), note=_noted(note))
            for each in changes
        ]
        return await self.change(
            actor,
            "document.apply",
            changes,
            dry_run=dry_run,
            preempt=preempt,
            replaces=replaces and only is None,
        )

    async def roll_back(
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

        Raises the same as `apply_documents`, and NotFound for a missing revision.
        """
        await self._context.check(actor, "document.rollback", Resource("document", f"{kind}/{name}"), revision=revision)
        found = await self._revision(_kind(kind), name, revision, deleted=True)
        said = _noted(note or f"rolled back to revision {revision}")
        change = DocumentChange(found.kind, name, None if found.deleted else found.doc, guard, said)
        return await self.change(actor, "document.rollback", [change], dry_run=dry_run, preempt=preempt)

    async def delete(
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
        """Delete a document; its revisions are kept.

        Raises the same as `apply_documents`, and NotFound for a missing document.
        """
        await self._context.check(actor, "document.delete", Resource("document", f"{kind}/{name}"))
        found = await self._revision(_kind(kind), name, None)
        change = DocumentChange(found.kind, name, None, guard, _noted(note))
        return await self.change(actor, "document.delete", [change], dry_run=dry_run, preempt=preempt)

    async def change(
        self,
        actor: Actor,
        action: str,
        given: Sequence[DocumentChange],
        *,
        dry_run: bool,
        preempt: bool,
        replaces: bool = False,
        decision: Decision | None = None,
    ) -> Applied:
        """Store changes, all or none.

        `decision` marks a manager's change: access was checked before, and its manager limits are stored as given.
        """
        names = ", ".join(f"{change.kind}/{change.name}" for change in given)
        managed = decision is not None
        decision = decision or await self._context.check(actor, action, Resource("document", names), dry_run=dry_run)
        note = given[0].note if given else ""
        for tried in range(_TRIES):
            now, changes = await self._store.all_documents(), given
            if replaces:
                changes = await self._context.run_in_worker(
                    _are_small(now, given), with_virtual_clusters_gone, now, given, note
                )
            if not managed and _has_queues(changes):
                changes = await self._context.run_in_worker(_are_small(now, changes), with_manager_limits, now, changes)
            plan = await self._context.run_in_worker(_are_small(now, changes), planned, now, changes)
            idle = all(each.action == "unchanged" for each in plan.outcomes)
            findings = () if idle else await self._findings(now, plan, changes, changes[len(given) :])
            _refuse_broken(findings, preempt=preempt)
            if dry_run:
                return Applied(plan.outcomes, dry_run=True, findings=findings)
            lines = [
                self._context.line(
                    actor, action, Resource("document", f"{change.kind}/{change.name}"), decision, preempt=preempt
                )
                for change in changes
            ]
            try:
                stored = await self._put(actor, changes, plan, lines, preempt=preempt)
            except Conflict as error:
                if error.code != DOCUMENTS_CHANGED or tried == _TRIES - 1:
                    raise
                continue
            numbers = {(each.kind, each.name): each.revision for each in stored}
            done = (
                msgspec.structs.replace(each, revision=numbers.get((each.kind, each.name), each.revision))
                for each in plan.outcomes
            )
            return Applied(tuple(done), findings=findings)
        raise AssertionError("the last try returns or raises")

    async def _put(
        self,
        actor: Actor,
        changes: Sequence[DocumentChange],
        plan: Planned,
        audit: Sequence[AuditWrite],
        *,
        preempt: bool,
    ) -> list[DocumentRevision]:
        return await self._store.put_documents(
            changes,
            actor=actor.user,
            at=self._clock.now(),
            seen=plan.change,
            queues=plan.queues,
            audit=audit,
            preempt=preempt,
        )

    async def _findings(
        self, now: Documents, plan: Planned, changes: Sequence[DocumentChange], replaced: Sequence[DocumentChange]
    ) -> tuple[GuaranteeFinding, ...]:
        """The guarantees that the configuration would break; `replaced` deletes the virtual clusters that it lacks."""
        if plan.findings:
            return plan.findings
        if all(change.kind in UNSCHEDULED for change in changes):
            return ()
        names = [change.name for change in replaced]
        await self._check_queues_in_use([name for name in plan.queues_gone if name not in names])
        documents = [json.loads(each.doc) for each in after(now, changes)]
        broken = msgspec.convert(await self._context.control.request(CHECK, {"documents": documents}), _FINDINGS)
        return (*await self._left_behind(names), *broken)

    async def _left_behind(self, names: Sequence[str]) -> list[GuaranteeFinding]:
        """Findings about the jobs of virtual clusters that are deleted."""
        counts = await self._store.count_jobs() if names else {}
        told = [(name, what_becomes(name, counts.get(name, {}))) for name in names]
        return [GuaranteeFinding(said, name, preemptible=True) for name, said in told if said]

    async def _check_queues_in_use(self, gone: Sequence[str]) -> None:
        if not gone:
            return
        counts = await self._store.count_jobs()
        for name in gone:
            live = sum(counts.get(name, {}).get(phase, 0) for phase in ("waiting", "starting", "running", "stopping"))
            if live:
                raise Conflict(
                    "queue-in-use",
                    f"Jobs of the queue {name} are not over yet ({live}); wait for them, or stop them "
                    f"(corral ls --queue {name} --live -o name | xargs corral stop).",
                )

    async def _revision(self, kind: str, name: str, revision: int | None, *, deleted: bool = False) -> DocumentRevision:
        found = await self._store.document(kind, name, revision)
        if found is None and revision is not None and await self._store.document(kind, name) is not None:
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


def _has_queues(changes: Sequence[DocumentChange]) -> bool:
    return any(change.kind == "Queue" for change in changes)


def _are_small(now: Documents, changes: Sequence[DocumentChange]) -> bool:
    return is_small(*(each.doc for each in now.revisions), *(each.doc for each in changes))


def _check_only(changes: Sequence[DocumentChange], wanted: tuple[str, str]) -> None:
    names = [(each.kind, each.name) for each in changes]
    if names != [wanted]:
        there = ", ".join("/".join(name) for name in names)
        raise InvalidInput(
            "other-document",
            f"The address is that of {'/'.join(wanted)}, and the body holds {there}; send only the former.",
        )


def _guards_of(changes: Sequence[DocumentChange], guards: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Guards by the kinds' own names; each must be of a document that is changed."""
    named = {(_kind(kind), name): revision for (kind, name), revision in guards.items()}
    absent = named.keys() - {(each.kind, each.name) for each in changes}
    if absent:
        raise InvalidInput(
            "other-document",
            f"The file does not hold {'/'.join(min(absent))}, whose revision was given; leave that out.",
        )
    return named


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
