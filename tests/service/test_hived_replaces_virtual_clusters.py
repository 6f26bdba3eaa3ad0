"""A HiveD configuration replaces the virtual clusters, after a preview of the jobs that it affects."""

from __future__ import annotations

import pytest

from corral.kernel.errors import Conflict
from corral.model.document_revisions import Applied
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, ROOT, FakeControl, job_text

HIVED = """
physicalCluster:
  cellTypes:
    BOX: {childCellType: GPU, childCellNumber: 4, isNodeLevel: true}
  physicalCells:
  - {cellType: BOX, cellAddress: node0}
  - {cellType: BOX, cellAddress: node1, pinnedCellId: mine}
virtualClusters:
  a: {virtualCells: [{cellType: BOX, cellNumber: 1}]}
"""
B = "  b: {pinnedCells: [{pinnedCellId: mine}]}\n"
EMPTY = "  empty: {}\n"
RESEARCH = "kind: Queue\nname: research\nlimit: {devices: 2}\n"


@pytest.fixture(autouse=True)
def control(fake_control: FakeControl) -> FakeControl:
    """A control that finds no broken guarantee."""
    fake_control.answers["/configuration/check"] = []
    return fake_control


def _queues(applied: Applied) -> dict[str, str]:
    return {each.name: each.action for each in applied.documents if each.kind == "Queue"}


async def test_a_virtual_cluster_that_is_missing_goes_and_other_queues_stay(service: Service, store: Store) -> None:
    await service.configuration.apply(ROOT, RESEARCH)
    made = await service.configuration.apply(ROOT, HIVED + B + EMPTY)
    assert _queues(made) == {"a": "created", "b": "created", "empty": "created"}
    compared = await service.configuration.compare(ROOT, HIVED)
    assert _queues(compared) == {"a": "unchanged", "b": "deleted", "empty": "deleted"}
    tried = await service.configuration.apply(ROOT, HIVED, dry_run=True)
    assert _queues(tried) == _queues(compared)
    done = await service.configuration.apply(ROOT, HIVED.replace("cellNumber: 1", "cellNumber: 2"), note="b moves out")
    assert _queues(done) == {"a": "changed", "b": "deleted", "empty": "deleted"}
    assert [queue.name for queue in await store.queues()] == ["a", "default", "research"]
    assert (await service.configuration.history(ROOT, "queue", "b")).items[0].note == "b moves out"
    assert _queues(await service.configuration.apply(ROOT, HIVED + B)) == {"a": "changed", "b": "created"}


async def test_documents_of_ours_replace_nothing_that_they_do_not_name(service: Service, store: Store) -> None:
    await service.configuration.apply(ROOT, HIVED + B)
    await service.configuration.apply(ROOT, "kind: Queue\nname: a\ncells: []\n")
    assert [queue.name for queue in await store.queues()] == ["a", "b", "default"]


async def test_what_its_jobs_become_is_told_before_it_goes(service: Service, store: Store) -> None:
    await service.configuration.apply(ROOT, HIVED + B)
    for name in ("one", "two"):
        await service.submission.submit(ANN, job_text(name, more="queue: b\n"))
    said = "the virtual cluster b goes: 2 of its jobs wait until there is a virtual cluster b again"
    for dry_run in (True, False):
        with pytest.raises(Conflict, match=said) as refused:
            await service.configuration.apply(ROOT, HIVED, dry_run=dry_run)
        assert refused.value.code == "guarantee-broken" and "--preempt" in refused.value.message
    tried = await service.configuration.apply(ROOT, HIVED, dry_run=True, preempt=True)
    assert [finding.message for finding in tried.findings] == [said]
    assert [queue.name for queue in await store.queues()] == ["a", "b", "default"]
    assert _queues(await service.configuration.apply(ROOT, HIVED, preempt=True))["b"] == "deleted"


async def test_a_queue_that_somebody_deletes_by_name_must_still_be_empty(service: Service) -> None:
    await service.configuration.apply(ROOT, HIVED + B)
    await service.submission.submit(ANN, job_text("one", more="queue: b\n"))
    with pytest.raises(Conflict) as refused:
        await service.configuration.delete(ROOT, "queue", "b", preempt=True)
    assert refused.value.code == "queue-in-use"
