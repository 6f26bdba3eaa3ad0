"""Why: `corral up --cluster FILE` gives a first configuration, and must never undo silently what somebody applied since.

The file is the first revision when none is stored. A file that has changed since is the next revision as long as nobody
else changed the document; once somebody did, the stored document wins, and the start says so.
"""

from __future__ import annotations

from typing import Final

import structlog

from corral.kernel.clock import Clock
from corral.kernel.errors import Conflict
from corral.model.accounts import AuditWrite
from corral.model.configuration import Configuration, canonical, read_configuration
from corral.model.documents import DocumentChange, DocumentRevision, Documents
from corral.model.records import rfc3339
from corral.spec.cluster import ClusterDocument
from corral.spec.errors import path_text
from corral.store import Store

log = structlog.get_logger()

BY_FILE: Final = "corral up"
"""Who made the revisions that came with `--cluster`; no account can have this name."""
_TRIES: Final = 5


async def seed(store: Store, document: ClusterDocument | None, *, file: str, clock: Clock) -> str:
    """Store the document of `--cluster` if it is to be the current one, and the queues that follow from all documents.

    The answer is a sentence for whoever starts the server, "" when there is nothing to say.
    """
    for _ in range(_TRIES):
        now = await store.all_documents()
        change, said = _decide(now, document, file)
        after = read_configuration(_with(now, change), now.change)
        broken = after.findings() if change else []
        if change and broken:
            change, after = None, read_configuration(now.revisions, now.change)
            path, why = broken[0]
            said = f"{file} was not taken over, as it does not fit the stored documents: {path_text(path)}: {why}."
        if await _settle(store, now, change, after, clock):
            if said:
                log.warning(said)
            return said
    raise Conflict("documents-changed", "The configuration changes too often to start on it; start again.")


async def _settle(
    store: Store, now: Documents, change: DocumentChange | None, after: Configuration, clock: Clock
) -> bool:
    """Store the change and the queues; False when the documents changed meanwhile."""
    changes = [change] if change else []
    line = AuditWrite(clock.now(), BY_FILE, "document.apply", "document:Cluster", "given-at-start", True)
    try:
        await store.put_documents(
            changes,
            actor=BY_FILE,
            at=clock.now(),
            seen=now.change,
            queues=after.queue_records(),
            audit=[line] if change else [],
        )
    except Conflict:
        return False
    return True


def _decide(now: Documents, document: ClusterDocument | None, file: str) -> tuple[DocumentChange | None, str]:
    """The revision that a file makes, if any, and what is to be said about it."""
    if document is None:
        return None, ""
    name = f"Cluster/{document.engine}"
    stored = next((each for each in now.revisions if (each.kind, each.name) == ("Cluster", document.engine)), None)
    change = DocumentChange("Cluster", document.engine, canonical(document), note=f"from {file}"[:500])
    if stored is None:
        return change, ""
    if stored.doc == change.doc:
        return None, ""
    if stored.actor == BY_FILE:
        return change, f"{file} has changed: it is now revision {stored.revision + 1} of {name}."
    return None, (
        f"{file} differs from {name}, and the stored document wins: {stored.actor} made its revision {stored.revision} at "
        f"{rfc3339(stored.at)}. `corral diff {file}` shows the difference, `corral apply {file}` takes the file over."
    )


def _with(now: Documents, change: DocumentChange | None) -> list[DocumentRevision]:
    if change is None or change.doc is None:
        return list(now.revisions)
    rest = [each for each in now.revisions if (each.kind, each.name) != (change.kind, change.name)]
    return [*rest, DocumentRevision(change.kind, change.name, 0, change.doc, 0.0, BY_FILE)]
