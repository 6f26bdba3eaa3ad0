"""The cluster map shows every device once, in its cell, with its holder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corral.kernel.errors import InvalidInput, NotFound, Unavailable
from corral.model.inventory import Node
from corral.model.views import Amounts, CellView
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, ROOT, FakeControl, job_text
from tests.service.test_jobs import _run, _submit


@pytest.fixture
async def running(service: Service, store: Store, epoch: int, machines: list[Node]) -> str:
    job = await _submit(service, job_text(devices=1))
    await _run(store, epoch, job)
    return job


async def test_a_node_shows_what_is_free_and_who_holds_the_rest(service: Service, running: str) -> None:
    first, second = (await service.nodes.page(ANN)).items
    assert first.total == Amounts(8000, 16 * 1024**3, 2) and first.free == Amounts(7000, 16 * 1024**3, 1)
    holding = first.devices[1].job
    assert holding is not None and (holding.id, holding.user, holding.role, holding.index) == (
        running,
        "ann",
        "worker",
        0,
    )
    assert first.devices[0].job is None and second.free == second.total
    assert [(job.id, job.user, job.tasks, job.devices) for job in first.jobs] == [(running, "ann", 1, 1)]
    assert second.jobs == ()
    assert await service.nodes.get(ANN, "local/n1") == first
    with pytest.raises(NotFound):
        await service.nodes.get(ANN, "local/n9")


async def test_nodes_and_devices_come_in_pages(service: Service, machines: list[Node]) -> None:
    page = await service.nodes.page(ANN, limit=1)
    rest = await service.nodes.page(ANN, limit=1, after=page.next or "")
    assert [node.name for node in [*page.items, *rest.items]] == ["local/n1", "local/n2"] and rest.next is None
    first = await service.nodes.devices(ANN, limit=3)
    last = await service.nodes.devices(ANN, limit=3, after=first.next or "")
    assert [device.id for device in [*first.items, *last.items]] == ["n1:0", "n1:1", "n2:0", "n2:1"]
    with pytest.raises(InvalidInput):
        await service.nodes.devices(ANN, after="x")


async def test_the_tree_has_every_device_in_its_cell(service: Service, running: str) -> None:
    root = await service.nodes.cluster(ANN)
    assert (root.level, root.devices, root.free) == ("root", 4, 3)
    paths = dict(_devices(root))
    assert paths["n1:1"] == "root:cluster/engine:local/rack:r1/node:local/n1/pcie-switch:1"
    assert len(paths) == 4


def _devices(cell: CellView, above: str = "") -> Iterator[tuple[str, str]]:
    here = f"{above}{cell.level}:{cell.name}"
    for device in cell.holds:
        yield device.id, here
    for inner in cell.cells:
        yield from _devices(inner, f"{here}/")


async def test_queues_and_top_count_what_runs_and_waits(service: Service, running: str) -> None:
    await _submit(service, job_text("waiting"))
    (queue,) = (await service.queues.page(ANN)).items
    assert (queue.name, queue.running, queue.waiting, queue.devices) == ("default", 1, 1, 1)
    top = await service.nodes.top(ANN)
    assert (top.running, top.waiting, top.total.devices, top.free.devices) == (1, 1, 4, 3)
    assert [job.id for job in top.jobs] == [running]


async def test_queues_are_shown_without_control_and_in_its_order_with_it(
    service: Service, fake_control: FakeControl, running: str
) -> None:
    fake_control.answers["/configuration/check"] = []
    await service.configuration.apply(
        ROOT, "{kind: Queue, name: team}\n---\n{kind: Queue, name: default, parent: team}"
    )
    alone = await service.queues.get(ANN, "default")
    assert alone.standing is None and alone.running == 1
    fake_control.answers["/overview/queues"] = [
        {"name": "team", "ownedDevices": 8},
        {"name": "default", "parent": "team", "depth": 1},
    ]
    first, second = (await service.queues.page(ANN)).items
    assert (first.name, second.name) == ("team", "default")
    assert first.standing is not None and first.standing.owned_devices == 8
    assert second.running == 1 and (await service.queues.page(ANN, limit=1)).next == "1"
    with pytest.raises(NotFound, match="team, default"):
        await service.queues.get(ANN, "nowhere")


async def test_a_deleted_queue_is_gone_before_control_knows_of_it(service: Service, fake_control: FakeControl) -> None:
    fake_control.answers |= {
        "/configuration/check": [],
        "/overview/queues": [{"name": "default"}, {"name": "team", "ownedDevices": 8}],
    }
    await service.configuration.apply(ROOT, "{kind: Queue, name: team}")
    assert [queue.name for queue in (await service.queues.page(ANN)).items] == ["default", "team"]
    await service.configuration.delete(ROOT, "Queue", "team")
    assert [queue.name for queue in (await service.queues.page(ANN)).items] == ["default"]


async def test_the_line_and_the_cells_are_only_there_with_control(service: Service, fake_control: FakeControl) -> None:
    for call in (service.queues.waiting_line(ANN), service.queues.cells(ANN)):
        with pytest.raises(Unavailable):
            await call
    fake_control.answers["/overview/line?queue=&limit=100&after=0"] = {"at": "now", "total": 3}
    assert (await service.queues.waiting_line(ANN)).total == 3
