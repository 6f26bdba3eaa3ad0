"""Evictions of running gangs by preemption, drains, bad hardware and suspension, each with a receipt."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest_asyncio

from corral.kernel.errors import Unavailable
from corral.kernel.ids import JobId, parse_attempt_id
from corral.model.cordons import Cordon, Drain
from corral.model.inventory import Node
from corral.model.launch import InventoryChanged
from corral.model.receipts import Receipt
from corral.model.store_writes import IntentKind
from tests.control.harness import House, PaperEngine, short


class Engine(PaperEngine):
    """Machines that fail when the test says so."""

    def change(self, name: str, **fields: Any) -> None:
        """Change the fields of one node from now on."""
        self._nodes = tuple(
            msgspec.structs.replace(node, **fields) if node.name == name else node for node in self._nodes
        )
        self._events.put_nowait(InventoryChanged(self.name))

    def node(self, name: str) -> Node:
        return next(node for node in self._nodes if node.name == name)


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path, Engine())
    await house.open()
    yield house
    await house.close()


async def receipts(house: House, job: JobId, state: str = "") -> list[Receipt]:
    """The receipts of a job, once there is one in this state."""
    while True:
        found = (await house.store.receipts(job=job)).items
        states = ["returned" if each.returned_at else "over" if each.over else "away" for each in found]
        if not state or state in states:
            return found
        await house.store.wakeup.wait(0.05)


async def nodes_of(house: House, job: JobId) -> dict[int, str]:
    live = await house.store.load_job(job)
    assert live is not None
    return {key.index: task.placement.node for key, task in live.tasks.items() if task.holds and task.placement}


def cordon(house: House, node: str, drain: Drain = Drain.NONE, grace: float | None = None) -> Cordon:
    return Cordon(node, "root", "new cables", house.clock.now(), drain, grace)


async def running(house: House, name: str, **fields: Any) -> JobId:
    job = await house.submit(short(name, **fields))
    await house.until(job, "running")
    return job


async def wish(house: House, job: JobId, kind: IntentKind) -> None:
    await house.store.add_intent(job, kind, {}, actor="ada", at=house.clock.now())


async def test_a_gang_of_higher_priority_takes_the_place_of_a_lower_one_against_a_receipt(house: House) -> None:
    await house.begin()
    low = await running(house, "low", replicas=2, devices=4, priority="test")
    high = await house.submit(short("high", replicas=2, devices=4, priority="prod"))
    await house.until(high, "running")
    record = await house.until(low, "waiting")
    (receipt,) = await receipts(house, low)
    assert (receipt.rule, receipt.by_job, receipt.devices, receipt.user) == ("priority", high, 8, "ada")
    assert receipt.cost_device_seconds >= 0 and receipt.returned_at is None and not receipt.tasks
    assert record.run.retries.accountable == 0 and record.run.yields == 1
    while not (record.summary.waiting and receipt.message[1:] in record.summary.waiting.message):
        await house.store.wakeup.wait(0.05)
        record = await house.until(low, "waiting")
    kinds = [event.kind for event in await house.store.events(0, 500, low)]
    assert "job.preempted" in kinds
    await wish(house, high, IntentKind.STOP)
    await house.until(low, "running")
    (receipt,) = await receipts(house, low, "returned")
    assert receipt.returned_at is not None and receipt.returned_at >= receipt.at


async def test_a_drained_node_is_left_and_a_restart_in_between_forgets_nothing(house: House) -> None:
    await house.begin()
    job = await running(house, "moves", devices=2)
    (start,) = (await nodes_of(house, job)).values()
    await house.store.put_cordon(cordon(house, start, Drain.NOW, 3.0))
    (receipt,) = await receipts(house, job, "returned")
    (end,) = (await nodes_of(house, job)).values()
    assert end != start
    assert (receipt.rule, receipt.by_user, receipt.devices) == ("drain", "root", 2)
    assert receipt.back_at == receipt.at + 3.0, "there is room elsewhere, once its grace period is over"
    assert "new cables" in receipt.message
    await house.abandon()
    control = await house.begin()
    later = await running(house, "later", devices=2)
    assert await nodes_of(house, later) == {0: end}
    assert set(control.machines.cordons) == {start}


async def test_a_kill_between_storing_an_eviction_and_the_stop_loses_nothing(house: House) -> None:
    await house.begin()
    low = await running(house, "low", replicas=2, devices=4)

    def no_stops(call: str) -> None:
        if call == "stop":
            raise Unavailable("paper-engine", "the engine is away")

    house.engine.fault = no_stops
    high = await house.submit(short("high", replicas=2, devices=4, priority="prod"))
    (receipt,) = await receipts(house, low, "away")
    kept = house.control.world.cluster.digest()
    await house.abandon()
    assert not house.engine.stopped and {parse_attempt_id(one).job for one in house.engine.running} == {low}
    control = await house.begin()
    assert control.world.cluster.digest() == kept, "the rebuilt index knows as well who is leaving, and for whom"
    house.engine.fault = lambda call: None
    await house.until(high, "running")
    record = await house.until(low, "waiting")
    assert record.run.yields == 1
    assert await receipts(house, low) == [receipt]
