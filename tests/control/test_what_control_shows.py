"""Queues, the waiting list and the cells of a running control, read through its API as front does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import pytest_asyncio

from corral.control.control_api import ControlApi
from corral.control.core.world import World
from corral.control.loop import Control
from corral.control.scheduler_views import Views
from corral.kernel.errors import InvalidInput, NotFound
from corral.scheduler import BuiltinPlanner
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.service import Service
from tests.control.asked import Asked
from tests.control.forecast.unasked import no_forecasts
from tests.control.harness import House, PaperEngine, short

ANN = Actor("ann", token_id="t-ann")
ROOT = Actor("root", role="admin", token_id="t-root")


@pytest_asyncio.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr("corral.control.scheduler_views._KEPT_FOR", 0.0)
    made = House(tmp_path, PaperEngine())
    await made.open()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def service(house: House, tmp_path: Path) -> Service:
    await house.begin()
    control_client = Asked(ControlApi(house.control, tmp_path / "unused.sock"))
    return Service(Context(house.store, key=b"k" * 32, clock=house.clock, control=control_client))


async def test_who_waits_and_who_holds_what_is_shown_as_it_is(house: House, service: Service) -> None:
    running = await house.submit(short("runs", replicas=2, devices=3))
    await house.until(running, "running")
    waiting = await house.submit(short("waits", replicas=2, devices=2))
    await house.explained(waiting)
    line = await service.queues.waiting_line(ANN)
    assert [(entry.job, entry.name, entry.position, entry.devices) for entry in line.items] == [
        (waiting, "waits", 1, 4)
    ]
    assert line.items[0].reason is not None and line.items[0].reason.message
    tree = (await service.queues.cells(ANN, depth=9)).cell
    assert (tree.devices, tree.used, tree.free, tree.queues) == (8, 6, 2, {"default": 6})
    (engine,) = tree.cells
    uses = {use.name for rack in engine.cells for node in rack.cells for device in node.holds for use in device.uses}
    assert uses == {"runs"}
    queue = await service.queues.get(ANN, "default")
    assert (queue.running, queue.waiting, queue.devices) == (1, 1, 6)
    assert queue.standing is not None
    assert (queue.standing.used["devices"], queue.standing.wanted["devices"]) == (6, 4)
    house.engine.end(next(iter(house.engine.running)), 0)
    await house.until(waiting, "running")
    assert not (await service.queues.waiting_line(ANN)).items


async def test_what_is_asked_wrongly_is_refused(house: House, service: Service) -> None:
    with pytest.raises(NotFound, match="no cell"):
        await service.queues.cells(ANN, under="local|rack:nowhere")
    with pytest.raises(NotFound, match="no queue"):
        await service.queues.get(ANN, "nowhere")
    with pytest.raises(InvalidInput, match="after"):
        await service.queues.waiting_line(ANN, after="x")
    with pytest.raises(InvalidInput, match="one engine"):
        await service.queues.cells(ANN, engine="local", under="local|rack:rack0")
    assert (await service.queues.cells(ANN, engine="local", depth=0)).cell.level == "engine"
    assert (await service.queues.waiting_line(ANN, queue="nowhere")).items == ()


async def test_what_is_shown_is_made_once_for_a_state_and_no_more_than_a_few_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("corral.control.scheduler_views._KEPT_FOR", 0.0)
    world, views, made = World(BuiltinPlanner()), Views(not_asked, no_forecasts()), list[str]()

    def make(name: str) -> bytes:
        made.append(name)
        return name.encode()

    def show(name: str) -> bytes:
        return views._kept(name, world, lambda: make(name))

    assert [show("a"), show("a"), show("b")] == [b"a", b"a", b"b"] and made == ["a", "b"]
    world.cluster.revision += 1
    assert show("a") == b"a" and made == ["a", "b", "a"]
    for number in range(100):
        show(str(number))
    assert len(views._views) == 32 and "99" in views._views


async def test_what_is_dear_is_shown_again_for_a_while_though_the_state_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, worked = 1000.0, 0.0
    clocks = SimpleNamespace(perf_counter=lambda: clock, thread_time=lambda: worked)
    monkeypatch.setattr("corral.control.scheduler_views.time", clocks)
    world, views = World(BuiltinPlanner()), Views(not_asked, no_forecasts())

    def stalls(name: str) -> str:
        nonlocal clock, worked
        clock, worked = clock + 60.0, worked + 0.5
        return name

    assert views._kept("a", world, lambda: stalls("first")) == "first"
    world.cluster.revision += 1
    clock += 9.0
    assert views._kept("a", world, lambda: stalls("second")) == "first"
    clock += 2.0
    assert views._kept("a", world, lambda: stalls("second")) == "second", "a stall is no cost"


async def not_asked() -> Control:
    raise AssertionError("these views are given the world")


async def test_what_would_start_a_job_is_told_where_its_file_says_it(house: House, service: Service) -> None:
    nodes = ["elsewhere"]
    everywhere = await house.submit(short("everywhere", nodes=nodes))
    twice = json.loads(short("twice", nodes=nodes))
    twice["roles"]["worker"]["nodes"] = nodes
    both = await house.submit(json.dumps(twice))
    await house.explained(everywhere)
    await house.explained(both)
    assert [change.path for change in (await service.explanations.explain(ROOT, everywhere)).changes] == [
        "nodes.include"
    ]
    assert (await service.explanations.explain(ROOT, both)).changes == (), "no one field of its file says it"
