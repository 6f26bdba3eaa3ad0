"""A part of a task's placement may vanish between the plan and the start."""

from __future__ import annotations

import msgspec
import pytest

from corral.control.task_launch import PlaceGone, _devices
from corral.kernel.errors import Unavailable
from corral.model.inventory import Device, Node
from corral.model.launch import InventoryChanged
from tests.control.harness import House, short


async def test_a_start_whose_devices_vanished_goes_back_to_the_queue_with_the_reason(house: House) -> None:
    def away(call: str) -> None:
        if call == "start":
            raise Unavailable("engine-away", "The engine is away.")

    house.engine.fault = away
    await house.begin()
    job = await house.submit(short("wide", devices=4))
    await house.until(job, "starting")
    (node,) = house.engine._nodes
    house.engine._nodes = (msgspec.structs.replace(node, devices=node.devices[:2]),)
    house.engine._events.put_nowait(InventoryChanged(house.engine.name))
    record = await house.when(job, lambda record: record.phase == "waiting" and record.summary.waiting is not None)
    house.engine.fault = lambda call: None
    waiting = record.summary.waiting
    assert waiting is not None and not waiting.possible
    told = [event.message for event in await house.store.events(0, job=job) if event.kind == "task.unplaced"]
    assert told == ["worker-0 lost its place before it started: devices 2, 3 of the node local/node0 are gone"]
    house.engine._nodes = (node,)
    house.engine._events.put_nowait(InventoryChanged(house.engine.name))
    await house.until(job, "running")
    assert [len(launch.devices) for launch in house.engine.running.values()] == [4]
    assert record.summary.retries == 0


@pytest.mark.parametrize("gone", [True, False])
async def test_a_task_whose_start_the_engine_may_still_carry_out_goes_back_only_once_that_is_withdrawn(
    house: House, gone: bool
) -> None:
    asked: list[str] = []

    def away(call: str) -> None:
        if call == "start":
            raise Unavailable("engine-away", "The engine is away.")

    def withdraw(attempt: str) -> bool:
        asked.append(attempt)
        return gone

    house.engine.fault = away
    house.engine.withdraw = withdraw  # type: ignore[attr-defined]
    await house.begin()
    job = await house.submit(short("wide", devices=4))
    await house.until(job, "starting")
    house.engine._nodes = ()
    house.engine._events.put_nowait(InventoryChanged(house.engine.name))
    if gone:
        await house.when(job, lambda record: record.phase == "waiting")
    else:
        await house.when(job, lambda record: bool(asked))
        await house.explained(await house.submit(short("next", devices=4)))  # what came before is folded
        await house.until(job, "starting")
    told = [event.message for event in await house.store.events(0, job=job) if event.kind == "task.unplaced"]
    assert told == ["worker-0 lost its place before it started: the node local/node0 is gone"] * gone
    assert asked == [f"{job}.0.worker.0.0"]


def test_no_task_is_started_with_fewer_devices_than_it_was_given_or_on_a_node_that_nobody_knows() -> None:
    node = Node("local/n1", devices=(Device(0, "n1:0"), Device(2, "n1:2")))
    assert [device.id for device in _devices("local/n1", node, (0, 2))] == ["n1:0", "n1:2"]
    with pytest.raises(PlaceGone, match="device 1 of the node local/n1 is gone"):
        _devices("local/n1", node, (0, 1))
    with pytest.raises(PlaceGone, match="the node local/n1 is gone"):
        _devices("local/n1", None, ())
