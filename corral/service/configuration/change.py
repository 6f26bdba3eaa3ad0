"""Compute the effect of a configuration change from documents alone; large ones are computed in a worker."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from msgspec import structs

from corral.kernel.errors import Conflict
from corral.kernel.kinds import UNSCHEDULED
from corral.model.accounts import QueueRecord
from corral.model.configuration import canonical, read_configuration, read_revision, to_document
from corral.model.document_revisions import (
    AppliedDocument,
    DocumentChange,
    DocumentRevision,
    Documents,
    DocumentSummary,
    DocumentView,
    GuaranteeFinding,
)
from corral.model.records import rfc3339
from corral.model.virtual_clusters import missing_virtual_clusters
from corral.service.configuration.yaml_diff import as_yaml, compare
from corral.spec.configuration_file import identity, load_documents
from corral.spec.errors import path_text
from corral.workers.pool import INLINE_BYTES

NOTHING: Final = "nothing"
_LIMITS: Final = "managerLimits"
_MANY: Final = re.compile(r"""["'\w.\]-]\[\d|\\""")
"""Finds names that may expand to many (`node[01-99]`), and backslash escapes, which could hide such names."""


class Planned(NamedTuple):
    """The result of a change: an outcome for each document, contradictions between documents, and the queues."""

    outcomes: tuple[AppliedDocument, ...]
    findings: tuple[GuaranteeFinding, ...]
    change: int
    queues: list[QueueRecord]
    queues_gone: tuple[str, ...]


def is_small(*texts: str | bytes | None) -> bool:
    """Whether texts are small (`INLINE_BYTES` characters in all) and hold no names that may expand to many."""
    said = [each.decode("utf-8", "replace") if isinstance(each, bytes) else each or "" for each in texts]
    return sum(map(len, said)) <= INLINE_BYTES and not any(_MANY.search(each) for each in said)


class FileChanges(NamedTuple):
    """The changes of a file, and whether virtual clusters that it lacks are deleted (`replaces`)."""

    changes: list[DocumentChange]
    replaces: bool


def changes_in(text: str | bytes, filename: str) -> FileChanges:
    """Parse each document of a file into a change without an expected revision.

    Raises SpecError with every problem of the file.
    """
    loaded = load_documents(text, filename=filename)
    named = [(*identity(each), canonical(each)) for each in loaded.documents]
    return FileChanges([DocumentChange(kind, name, doc) for kind, name, doc in named], loaded.replaces_virtual_clusters)


def with_virtual_clusters_gone(
    now: Documents, changes: Sequence[DocumentChange], note: str = ""
) -> tuple[DocumentChange, ...]:
    """Add the deletion of every virtual cluster that a HiveD configuration does not have."""
    given = {change.name for change in changes if change.kind == "Queue"}
    gone = missing_virtual_clusters(now.revisions, given)
    return (*changes, *(DocumentChange(each.kind, each.name, None, note=note) for each in gone))


def with_manager_limits(now: Documents, changes: Sequence[DocumentChange]) -> list[DocumentChange]:
    """Keep the limits set by managers where a queue's new document sets none."""
    there = {each.name: json.loads(each.doc).get(_LIMITS) for each in now.revisions if each.kind == "Queue"}
    found = []
    for change in changes:
        kept = there.get(change.name) if change.kind == "Queue" and change.doc is not None else None
        if kept and any(kept.values()) and change.doc is not None:
            queue = json.loads(change.doc)
            if not any(queue.get(_LIMITS, {}).values()):
                text = json.dumps(queue | {_LIMITS: kept}, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
                change = structs.replace(change, doc=text)
        found.append(change)
    return found


def planned(now: Documents, changes: Sequence[DocumentChange]) -> Planned:
    """Compute the result of the changes."""
    told, configured = outcomes(now, changes), read_configuration(after(now, changes), now.change)
    findings: tuple[GuaranteeFinding, ...] = ()
    gone: tuple[str, ...] = ()
    if any(each.action != "unchanged" for each in told):
        found = configured.findings()
        findings = tuple(GuaranteeFinding(f"{path_text(path)}: {said}", _queue_in(path)) for path, said in found)
        if not findings and any(change.kind not in UNSCHEDULED for change in changes):
            gone = tuple(sorted(read_configuration(now.revisions).queues.keys() - configured.queues.keys()))
    return Planned(told, findings, configured.change, configured.queue_records(), gone)


def consistent(now: Documents, changes: Sequence[DocumentChange]) -> tuple[dict[str, Any], ...]:
    """All documents after the changes. Raises Conflict for documents that contradict each other."""
    plan = planned(now, changes)
    if plan.findings:
        raise Conflict("documents-contradict", "; ".join(each.message for each in plan.findings[:5]) + ".")
    return tuple(json.loads(each.doc) for each in after(now, changes))


def candidate_documents(text: str) -> tuple[str, ...]:
    """The canonical texts of documents that are tried instead of those in force.

    Raises SpecError with every problem of the file, Conflict for documents that contradict each other.
    """
    changes = changes_in(text, "the documents").changes
    consistent(Documents(0), changes)
    return tuple(each.doc or "" for each in changes)


def after(now: Documents, changes: Sequence[DocumentChange]) -> list[DocumentRevision]:
    """The documents after the changes."""
    there = {(each.kind, each.name): each for each in now.revisions}
    for change in changes:
        there.pop((change.kind, change.name), None)
        if change.doc is not None:
            there[change.kind, change.name] = DocumentRevision(change.kind, change.name, 0, change.doc, 0.0, "")
    return [there[key] for key in sorted(there)]


def outcomes(now: Documents, changes: Sequence[DocumentChange]) -> tuple[AppliedDocument, ...]:
    """The outcome of the changes for each document, with a diff, before they are stored."""
    there = {(each.kind, each.name): each for each in now.revisions}
    told = []
    for change in changes:
        last = there.get((change.kind, change.name))
        if (last.doc if last else None) == change.doc:
            action = "unchanged"
        else:
            action = "deleted" if change.doc is None else "changed" if last else "created"
        number = last.revision if last else 0
        what = f"{change.kind}/{change.name}"
        coming = _yaml(change.kind, change.name, change.doc) if change.doc else ""
        shown = compare(_text(last), coming, f"{what} revision {number}" if number else NOTHING, what)
        told.append(AppliedDocument(change.kind, change.name, number, action, shown))
    return tuple(told)


def difference(earlier: DocumentRevision | None, later: DocumentRevision, earlier_name: str, later_name: str) -> str:
    """A unified diff of two revisions."""
    return compare(_text(earlier), _text(later), earlier_name, later_name)


def summary_of(revision: DocumentRevision) -> DocumentSummary:
    """A revision as lists and histories show it."""
    return DocumentSummary(
        revision.kind,
        revision.name,
        revision.revision,
        rfc3339(revision.at),
        revision.actor,
        revision.note,
        revision.deleted,
    )


def view_of(revision: DocumentRevision) -> DocumentView:
    """A revision with its document, as data and as YAML."""
    summary = summary_of(revision)
    document: dict[str, Any] = {} if revision.deleted else to_document(read_revision(revision))
    fields = {name: getattr(summary, name) for name in summary.__struct_fields__}
    return DocumentView(**fields, document=document, text=as_yaml(document) if document else "")


def _queue_in(path: Sequence[str | int]) -> str:
    return str(path[1]) if len(path) > 1 and path[0] == "queues" else ""


def _text(revision: DocumentRevision | None) -> str:
    return "" if revision is None or revision.deleted else _yaml(revision.kind, revision.name, revision.doc)


def _yaml(kind: str, name: str, doc: str) -> str:
    return as_yaml(to_document(read_revision(DocumentRevision(kind, name, 0, doc, 0.0, ""))))
