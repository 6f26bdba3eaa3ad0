"""Store the documents of `corral up --cluster FILE` as the first configuration, without undoing later changes.

A document of the file becomes the first revision when none is stored. A changed document becomes the next revision as
long as only the file has changed it. Once a user changed it, the stored document wins, and the start reports that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import structlog

from corral.kernel.clock import Clock
from corral.kernel.errors import Conflict
from corral.model.accounts import AuditWrite
from corral.model.configuration import Configuration, canonical, read_configuration
from corral.model.document_revisions import DocumentChange, DocumentRevision, Documents
from corral.model.records import rfc3339
from corral.model.virtual_clusters import missing_virtual_clusters, what_becomes
from corral.spec.configuration_file import Document, identity
from corral.spec.errors import path_text
from corral.store import Store

log = structlog.get_logger()

BY_FILE: Final = "corral up"
"""The actor of revisions from `--cluster`; no account can have this name."""
_TRIES: Final = 5


async def seed(store: Store, given: Sequence[Document], *, file: str, clock: Clock, replaces: bool = False) -> str:
    """Store the documents of `--cluster` that become current, and the queues that follow from all documents.

    `replaces`: the file is HiveD's. A virtual cluster that came from it before and is now missing is deleted, unless it
    has live jobs. Returns a message for the operator, "" for none. Raises Conflict when the documents keep changing.
    """
    for _ in range(_TRIES):
        now = await store.all_documents()
        last = [await store.document(*identity(document)) for document in given]
        changes, said = _decide(given, last, file)
        if replaces:
            gone, told = await _gone(store, now, given, file)
            changes, said = changes + gone, said + told
        after = read_configuration(_with(now, changes), now.change)
        broken = after.findings() if changes else []
        if broken:
            path, why = broken[0]
            changes, after = [], read_configuration(now.revisions, now.change)
            said = [f"{file} was not taken over, as it does not fit the stored documents: {path_text(path)}: {why}."]
        if await _settle(store, now, changes, after, clock):
            for sentence in said:
                log.warning(sentence)
            return " ".join(said)
    raise Conflict("documents-changed", "The configuration changes too often to start on it; start again.")


async def _gone(
    store: Store, now: Documents, given: Sequence[Document], file: str
) -> tuple[list[DocumentChange], list[str]]:
    """Deletions of virtual clusters that the file no longer has, and messages about them."""
    names = {name for kind, name in map(identity, given) if kind == "Queue"}
    missing = missing_virtual_clusters(now.revisions, names)
    counts = await store.count_jobs() if missing else {}
    changes, said = [], []
    for each in missing:
        becomes = what_becomes(each.name, counts.get(each.name, {}))
        if each.actor != BY_FILE:
            said.append(
                f"Queue/{each.name} is not in {file} and stays: {each.actor} made its revision {each.revision}."
            )
        elif becomes:
            said.append(
                f"Queue/{each.name} is not in {file} any more and stays while its jobs do; without it {becomes}. "
                f"`corral apply {file} --preempt` deletes it now."
            )
        else:
            changes.append(DocumentChange(each.kind, each.name, None, note=f"not in {PurePath(file).name}"[:500]))
            said.append(f"Queue/{each.name} is not in {file} any more: it is deleted.")
    return changes, said


async def _settle(
    store: Store, now: Documents, changes: Sequence[DocumentChange], after: Configuration, clock: Clock
) -> bool:
    """Store the changes and the queues; False when the documents changed meanwhile."""
    lines = [
        AuditWrite(
            clock.now(), BY_FILE, "document.apply", f"document:{change.kind}/{change.name}", "given-at-start", True
        )
        for change in changes
    ]
    try:
        await store.put_documents(
            changes, actor=BY_FILE, at=clock.now(), seen=now.change, queues=after.queue_records(), audit=lines
        )
    except Conflict:
        return False
    return True


def _decide(
    given: Sequence[Document], last: Sequence[DocumentRevision | None], file: str
) -> tuple[list[DocumentChange], list[str]]:
    """The revisions that a file makes, and messages about them; `last` has the latest revision of each document."""
    changes, said = [], []
    for document, there in zip(given, last, strict=True):
        kind, name = identity(document)
        change = DocumentChange(kind, name, canonical(document), note=f"from {PurePath(file).name}"[:500])
        if there is None:
            changes.append(change)
        elif there.doc != change.doc and there.actor == BY_FILE:
            changes.append(change)
            said.append(f"{kind}/{name} has changed in {file}: it is now at revision {there.revision + 1}.")
        elif there.doc != change.doc:
            what = "deleted it in" if there.deleted else "made"
            said.append(
                f"{kind}/{name} differs from {file}, and the stored document applies: {there.actor} {what} its revision "
                f"{there.revision} at {rfc3339(there.at)}. `corral diff {file}` shows the difference, "
                f"`corral apply {file}` takes the file over."
            )
    return changes, said


def _with(now: Documents, changes: Sequence[DocumentChange]) -> list[DocumentRevision]:
    """The documents after the changes."""
    there = {(each.kind, each.name): each for each in now.revisions}
    for each in changes:
        there.pop((each.kind, each.name), None)
        if each.doc is not None:
            there[each.kind, each.name] = DocumentRevision(each.kind, each.name, 0, each.doc, 0.0, BY_FILE)
    return list(there.values())
