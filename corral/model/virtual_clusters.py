"""Find the virtual clusters that a new HiveD configuration, whose list is complete, removes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from corral.model.configuration import IN_FORCE, read_revision
from corral.model.document_revisions import DocumentRevision
from corral.spec.policy import PolicyDocument
from corral.spec.queue import QueueDocument

WAITING = ("waiting",)
RUNNING = ("starting", "running", "stopping")


def missing_virtual_clusters(now: Iterable[DocumentRevision], given: Collection[str]) -> list[DocumentRevision]:
    """The stored queues that are virtual clusters and not among those `given`, in order.

    A virtual cluster owns cells; under the hived preset, a queue document with only a name is one without cells.
    """
    documents = [(each, read_revision(each)) for each in now if not each.deleted]
    under_hived = any(
        isinstance(document, PolicyDocument) and document.name == IN_FORCE and document.preset == "hived"
        for _, document in documents
    )
    return [
        revision
        for revision, document in documents
        if isinstance(document, QueueDocument) and document.name not in given and _is_one(document, under_hived)
    ]


def what_becomes(name: str, phases: dict[str, int]) -> str:
    """A clause on how the jobs of a removed virtual cluster continue; "" if it has none."""
    running = sum(phases.get(each, 0) for each in RUNNING)
    waiting = sum(phases.get(each, 0) for each in WAITING)
    told = []
    if running:
        told.append(
            f"{running} of its jobs {_verb(running, 'runs', 'run')} on as {_verb(running, 'a guest', 'guests')}"
        )
    if waiting:
        said = f"{waiting} of its jobs {_verb(waiting, 'waits', 'wait')} until there is a virtual cluster {name} again"
        told.append(said)
    return f"the virtual cluster {name} goes: {' and '.join(told)}" if told else ""


def _verb(count: int, one: str, many: str) -> str:
    return one if count == 1 else many


def _is_one(queue: QueueDocument, under_hived: bool) -> bool:
    return bool(queue.cells or queue.pinned_cells) or (under_hived and queue == QueueDocument(name=queue.name))
