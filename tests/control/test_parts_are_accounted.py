"""Half a device counts as half in every step from the job file to the ledger: plan, store, pages and bills."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec import structs

from corral.control.control_api import ControlApi
from corral.devices.described import described_inventory
from corral.kernel.ids import JobId
from corral.model.configuration import canonical
from corral.model.document_revisions import DocumentChange
from corral.model.inventory import MPS_LABEL
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.service import Service
from corral.spec.cluster import load_cluster
from corral.spec.configuration_file import identity, load_document
from tests.control.harness import House, PaperEngine
from tests.control.test_what_control_shows import Asked

ANN = Actor("ann", token_id="t-ann")
SLICED = """
kind: Cluster
node:
  cpu: 8
  memory: 16Gi
  devices: {count: 1, model: H100, memory: 80Gi, slices: {count: 2, model: half-h100, memory: 40Gi}}
nodes: "n[1-2]"
"""


class Paper(PaperEngine):
    """Machines as a document describes them."""

    def describe(self, text: str, **labels: str) -> None:
        nodes = described_inventory(load_cluster(text), self.name).nodes
        self._nodes = tuple(structs.replace(node, labels=labels) for node in nodes)


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, Paper(nodes=1, devices=2))
    await made.open()
    yield made
    await made.close()


async def configured(house: House, text: str) -> Service:
    """Run control with these queues."""
    changes = [DocumentChange(*identity(each), canonical(each)) for each in load_document(text)]
    await house.store.put_documents(changes, actor="root", at=1.0)
    await house.begin()
    control_client = Asked(ControlApi(house.control, house.folder / "unused.sock"))
    return Service(Context(house.store, key=b"k" * 32, clock=house.clock, control=control_client))


def job(name: str, devices: object = 0.5, replicas: int = 1, **more: Any) -> str:
    """A job whose tasks request these devices."""
    role = {"replicas": replicas, "resources": {"cpu": 1, "devices": devices}, "command": ["true"]}
    return json.dumps({"name": name, "framework": "shell", "roles": {"worker": role}, **more})


async def why(house: House, service: Service, waiting: JobId) -> str:
    await house.explained(waiting)
    reasons = (await service.jobs.get(ANN, waiting)).reasons
    assert reasons is not None
    return reasons.binding.message


async def test_a_queue_of_one_device_runs_two_halves_and_says_why_the_third_waits(house: House) -> None:
    service = await configured(house, "kind: Queue\nname: small\nlimit: {devices: 1}\n")
    for name in ("first", "second"):
        await house.until(await house.submit(job(name, queue="small")), "running")
    third = await house.submit(job("third", queue="small"))
    assert await why(house, service, third) == (
        "Queue small may hold 1 device; 1 device is held, and this job needs 0.5 devices."
    )
    queue = await service.queues.get(ANN, "small")
    assert queue.devices == 1 and queue.standing is not None
    assert (queue.standing.used["devices"], queue.standing.wanted) == (1, {"devices": 0.5, "cpu": 1000})
    (entry,) = (await service.queues.waiting_line(ANN)).items
    assert entry.devices == 0.5 and entry.reason is not None
    assert entry.reason.counts == {"limit": 1, "used": 1, "needed": 0.5}
    assert (await service.queues.cells(ANN)).cell.queues == {"small": 1}
    (node,) = (await service.nodes.page(ANN)).items
    assert (node.total.devices, node.free.devices, sum(each.devices for each in node.jobs)) == (2, 1, 1)
    shared = next(device for device in node.devices if device.job is not None)
    holders = [each for each in (shared.job, *shared.others) if each is not None]
    assert {each.name for each in holders} == {"first", "second"} and not shared.free
    assert all(each.share is not None and each.share.compute_percent == 50 for each in holders)
    house.engine.end(next(iter(house.engine.running)), 0)
    await house.until(third, "running")


async def test_what_is_lent_and_lost_in_halves_is_written_in_halves(house: House) -> None:
    queues = "kind: Queue\nname: a\ndeserved: {devices: 1}\n---\nkind: Queue\nname: b\ndeserved: {devices: 1}\n"
    service = await configured(house, queues)
    borrowers = [await house.submit(job(f"j{at}", queue="a")) for at in range(3)]
    for each in borrowers:
        await house.until(each, "running")
    while not (await house.store.ledger("b")):
        await house.store.wakeup.wait(0.05)
    (line,) = (await service.receipts.ledger(ANN, "b")).lent
    assert (line.queue, line.devices) == ("a", 0.5)
    await house.until(await house.submit(job("owner", 1, queue="b")), "running")
    (receipt,) = (await house.store.receipts(queue="b")).items
    assert (receipt.devices, receipt.rule, receipt.queue) == (0.5, "reclaim", "a")
    while (await service.receipts.ledger(ANN, "b")).lent[0].devices:
        await house.store.wakeup.wait(0.05)


async def test_slices_are_limited_by_their_model_and_count_as_parts_of_their_device(house: House) -> None:
    assert isinstance(house.engine, Paper)
    house.engine.describe(SLICED)
    service = await configured(
        house,
        "kind: Queue\nname: one\nlimit: {devices/half-h100: 1}\n---\nkind: Queue\nname: two\nlimit: {devices: 1}\n",
    )
    slice_of = {"count": 1, "model": "half-h100"}
    await house.until(await house.submit(job("s1", slice_of, queue="one")), "running")
    more = await house.submit(job("s2", slice_of, queue="one"))
    assert await why(house, service, more) == (
        "Queue one may hold 1 half-h100 device; 1 half-h100 device is held, and this job needs 1 half-h100 device."
    )
    for name in ("t1", "t2"):
        await house.until(await house.submit(job(name, slice_of, queue="two")), "running")
    last = await house.submit(job("t3", slice_of, queue="two"))
    assert await why(house, service, last) == (
        "Queue two may hold 1 device; 1 device is held, and this job needs 0.5 devices."
    )
    standing = {each.name: each.standing for each in (await service.queues.page(ANN)).items}
    assert standing["one"] is not None and standing["two"] is not None
    assert standing["one"].used["devices"] == 0.5 and standing["one"].used["devices/half-h100"] == 1
    assert standing["two"].used["devices"] == 1 and standing["two"].used["devices/half-h100"] == 2
    tree = (await service.queues.cells(ANN, depth=9)).cell
    assert tree.queues == {"one": 0.5, "two": 1}
    top = await service.nodes.top(ANN)
    assert (top.total.devices, top.free.devices) == (2, 0), "slices are no devices besides those that they are cut from"
    assert sum(device.free for node in (await service.nodes.page(ANN)).items for device in node.devices) == 1
    assert house.control.world.cluster.queues.total[0] == 2000


@pytest.mark.parametrize("service_runs", [False, True])
async def test_a_part_is_labelled_not_enforced_where_no_multi_process_service_runs(
    house: House, service_runs: bool
) -> None:
    assert isinstance(house.engine, Paper)
    house.engine.describe(SLICED, **(dict([MPS_LABEL]) if service_runs else {}))
    service = await configured(house, "kind: Queue\nname: q\n")
    half, whole = await house.submit(job("half", queue="q")), await house.submit(job("whole", 1, queue="q"))
    for each in (half, whole):
        await house.until(each, "running")
    detail = await service.jobs.get(ANN, half)
    said = () if service_runs else (f"device shares are counted but not enforced on {detail.placement[0].node}",)
    assert detail.notes == said
    assert detail.placement[0].share is not None and detail.placement[0].share.compute_percent == 50
    assert (await service.jobs.get(ANN, whole)).notes == ()
