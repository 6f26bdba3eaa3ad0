"""Evictions of running gangs by preemption, drains, bad hardware and suspension, each with a receipt."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
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


async def test_a_cordoned_node_takes_nothing_new_and_keeps_what_it_has(house: House) -> None:
    await house.begin()
    await house.store.put_cordon(cordon(house, "local/node0"))
    first = await running(house, "first", devices=4)
    assert await nodes_of(house, first) == {0: "local/node1"}
    second = await house.submit(short("second", devices=4))
    record = await house.until(second, "waiting")
    while record.summary.waiting is None:
        await house.store.wakeup.wait(0.05)
        record = await house.until(second, "waiting")
    await house.store.put_cordon(cordon(house, "local/node1"))
    while not (record.summary.waiting and record.summary.waiting.code == "cordoned"):
        await house.store.wakeup.wait(0.05)
        record = await house.until(second, "waiting")
    assert "cordoned by root: new cables" in record.summary.waiting.message
    await house.store.remove_cordon("local/node0", actor="root", at=house.clock.now())
    await house.until(second, "running")
    assert await nodes_of(house, second) == {0: "local/node0"}
    assert (await house.until(first, "running")).run.yields == 0


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


async def test_a_drain_that_lets_jobs_end_ends_none(house: House) -> None:
    await house.begin()
    job = await running(house, "ends", devices=1)
    (node,) = (await nodes_of(house, job)).values()
    await house.store.put_cordon(cordon(house, node, Drain.AFTER_JOBS))
    other = await running(house, "other", devices=1)
    assert node not in (await nodes_of(house, other)).values()
    assert (await house.until(job, "running")).run.yields == 0


async def test_an_elastic_gang_leaves_a_drained_node_with_its_tasks_there_only(house: House) -> None:
    await house.begin()
    job = await running(house, "elastic", replicas={"min": 2, "max": 8}, devices=1)
    before = await nodes_of(house, job)
    assert len(before) == 8
    spared = next(node for node in set(before.values()) if node != before[0])
    await house.store.put_cordon(cordon(house, spared, Drain.NOW))
    while len(await nodes_of(house, job)) > 4:
        await house.store.wakeup.wait(0.05)
    record = await house.until(job, "running")
    assert record.run.attempt == 0 and record.run.roles["worker"].target == 8
    await house.store.remove_cordon(spared, actor="root", at=house.clock.now())
    (receipt,) = await receipts(house, job, "returned")
    assert {key.index for key in receipt.tasks} == {index for index, node in before.items() if node == spared}
    assert len(await nodes_of(house, job)) == 8


async def test_the_node_of_task_0_costs_an_elastic_gang_its_attempt(house: House) -> None:
    await house.begin()
    job = await running(house, "elastic", replicas={"min": 1, "max": 8}, devices=1)
    before = await nodes_of(house, job)
    await house.store.put_cordon(cordon(house, before[0], Drain.NOW))
    (receipt,) = await receipts(house, job, "returned")
    assert receipt.tasks == () and receipt.devices == 8 and receipt.cost_device_seconds > 0
    record = await house.until(job, "running")
    assert record.run.attempt == 1
    assert before[0] not in (await nodes_of(house, job)).values()


@pytest.mark.parametrize(("wanted", "moves"), [("auto", False), ("keep", False), ("replace", True)])
async def test_an_unhealthy_device_is_left_by_jobs_that_say_so(house: House, wanted: str, moves: bool) -> None:
    """Y9: a device with ECC errors is given to nobody; the job on it runs on unless it asked to be moved."""
    await house.begin()
    job = await running(house, "ecc", devices=1, badHardware=wanted)
    live = await house.store.load_job(job)
    assert live is not None
    (place,) = [task.placement for task in live.tasks.values()]
    assert place is not None
    engine = house.engine
    assert isinstance(engine, Engine)
    sick = [
        msgspec.structs.replace(device, healthy=False, health_reason="ECC") if device.index in place.devices else device
        for device in engine.node(place.node).devices
    ]
    engine.change(place.node, devices=tuple(sick))
    if moves:
        (receipt,) = await receipts(house, job, "returned")
        assert receipt.rule == "bad-hardware" and "ECC" in receipt.message
    other = await house.submit(short("other", replicas=7, devices=1))
    await house.until(other, "running" if not moves else "waiting")
    record = await house.until(job, "running")
    assert record.run.yields == (1 if moves else 0)
    live = await house.store.load_job(job)
    assert live is not None
    (now,) = [task.placement for task in live.tasks.values()]
    assert (now is not None and (now.node, now.devices) != (place.node, place.devices)) or not moves


@pytest.mark.parametrize(("wanted", "moves"), [("auto", True), ("keep", False), ("replace", True)])
async def test_a_lost_node_is_left_by_all_but_those_that_stay(house: House, wanted: str, moves: bool) -> None:
    house.not_ready_seconds = 0.0
    await house.begin()
    job = await running(house, "lost", devices=1, badHardware=wanted)
    (node,) = (await nodes_of(house, job)).values()
    engine = house.engine
    assert isinstance(engine, Engine)
    engine.change(node, ready=False, ready_reason="disk gone")
    if moves:
        (receipt,) = await receipts(house, job, "returned")
        assert receipt.rule == "bad-hardware" and "disk gone" in receipt.message
        assert node not in (await nodes_of(house, job)).values()
    else:
        other = await running(house, "other", devices=4)
        assert node not in (await nodes_of(house, other)).values()
        assert (await house.until(job, "running")).run.yields == 0


async def test_a_node_that_is_back_soon_costs_nobody_anything(house: House) -> None:
    house.not_ready_seconds = 3600.0
    control = await house.begin()
    job = await running(house, "stays", devices=1)
    (node,) = (await nodes_of(house, job)).values()
    engine = house.engine
    assert isinstance(engine, Engine)
    engine.change(node, ready=False)
    other = await running(house, "other", devices=4)
    assert node not in (await nodes_of(house, other)).values()
    assert control.machines.next_loss(house.clock.now()) is not None
    engine.change(node, ready=True)
    await running(house, "third", devices=3)
    assert control.machines.next_loss(house.clock.now()) is None
    assert (await house.until(job, "running")).run.yields == 0


async def test_a_suspended_job_stays_away_through_a_restart_until_it_is_resumed(house: House) -> None:
    await house.begin()
    job = await running(house, "asleep", devices=1)
    await wish(house, job, IntentKind.SUSPEND)
    record = await house.until(job, "waiting")
    while record.summary.waiting is None:
        await house.store.wakeup.wait(0.05)
        record = await house.until(job, "waiting")
    assert record.run.hold == "suspended" and record.summary.waiting.code == "suspended"
    await house.abandon()
    control = await house.begin()
    assert not control.world.cluster.holds(job) and not control.world.queue.waiting(job)
    await wish(house, job, IntentKind.RESUME)
    await house.until(job, "running")
    (receipt,) = await receipts(house, job, "returned")
    assert (receipt.rule, receipt.by_user) == ("suspended", "ada")


async def test_a_job_that_ends_away_has_its_receipt_closed(house: House) -> None:
    await house.begin()
    job = await running(house, "stopped", devices=1)
    await wish(house, job, IntentKind.SUSPEND)
    await receipts(house, job, "away")
    await wish(house, job, IntentKind.STOP)
    assert (await house.until(job, "stopped", "failed")).phase == "stopped"
    (receipt,) = await receipts(house, job, "over")
    assert receipt.returned_at is None
    assert await house.store.open_receipts() == []


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
