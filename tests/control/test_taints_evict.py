"""A new `NoExecute` taint evicts jobs that do not tolerate it, with a receipt; in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest_asyncio

from corral.kernel.ids import JobId
from corral.model.inventory import Taint
from corral.model.launch import InventoryChanged
from corral.model.receipts import Receipt
from tests.control.harness import House, PaperEngine, short

OUT = Taint("maintenance", "", "NoExecute")


class Engine(PaperEngine):
    """Machines that the test taints."""

    def taint(self, name: str, *taints: Taint) -> None:
        """Give the node these taints from now on."""
        self._nodes = tuple(
            msgspec.structs.replace(node, taints=taints) if node.name == name else node for node in self._nodes
        )
        self._events.put_nowait(InventoryChanged(self.name))


class Later:
    """The clock of a house, which the test moves."""

    def __init__(self, house: House) -> None:
        self._real = house.clock
        self._ahead = 0.0

    def now(self) -> float:
        return self._real.now() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += seconds


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, Engine())
    made.clock = Later(made)  # type: ignore[assignment]
    await made.open()
    yield made
    await made.close()


async def _running(house: House, name: str, **fields: Any) -> tuple[JobId, str]:
    """A running job, and its node."""
    job = await house.submit(short(name, **fields))
    await house.until(job, "running")
    return job, await _node_of(house, job)


async def _node_of(house: House, job: JobId) -> str:
    live = await house.store.load_job(job)
    assert live is not None
    (node,) = {task.placement.node for task in live.tasks.values() if task.holds and task.placement}
    return node


async def _returned(house: House, job: JobId) -> Receipt:
    """The receipt of a job that runs again."""
    while not (found := [each for each in (await house.store.receipts(job=job)).items if each.returned_at]):
        await house.store.wakeup.wait(0.05)
    return found[0]


async def _after(house: House, job: JobId) -> int:
    """The number of evictions of a job after a change of the machines was handled."""
    await house.until(await house.submit(short("after", end_with=0)), "succeeded")
    return (await house.until(job, "running")).run.yields


async def test_a_job_that_does_not_tolerate_it_leaves_and_those_that_do_stay(house: House) -> None:
    await house.begin()
    job, node = await _running(house, "leaves", devices=1)
    tolerant, there = await _running(
        house, "stays", devices=1, nodes={"tolerations": [{"key": "maintenance", "operator": "Exists"}]}
    )
    assert there == node
    house.engine.taint(node, OUT)  # type: ignore[attr-defined]
    receipt = await _returned(house, job)
    assert receipt.rule == "taint"
    assert receipt.message == f"The node {node} has the taint maintenance:NoExecute, which it does not tolerate."
    assert await _node_of(house, job) != node
    assert (await house.until(tolerant, "running")).run.yields == 0 and await _node_of(house, tolerant) == node


async def test_one_that_tolerates_it_for_a_time_leaves_when_that_is_over_and_not_before(house: House) -> None:
    await house.begin()
    tolerated = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}
    job, node = await _running(
        house, "later", devices=1, nodes={"tolerations": [tolerated], "include": ["node0", "node1"]}
    )
    house.engine.taint(node, OUT)  # type: ignore[attr-defined]
    assert await _after(house, job) == 0
    house.clock.advance(3000)  # type: ignore[attr-defined]
    assert await _after(house, job) == 0
    house.clock.advance(601)  # type: ignore[attr-defined]
    receipt = await _returned(house, job)
    assert receipt.rule == "taint" and receipt.message.endswith("which it does not tolerate any longer.")


async def test_a_taint_that_is_taken_away_in_time_sends_nobody_away(house: House) -> None:
    await house.begin()
    tolerated = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}
    job, node = await _running(house, "later", devices=1, nodes={"tolerations": [tolerated]})
    house.engine.taint(node, OUT)  # type: ignore[attr-defined]
    assert await _after(house, job) == 0
    house.engine.taint(node)  # type: ignore[attr-defined]
    assert await _after(house, job) == 0
    house.clock.advance(7200)  # type: ignore[attr-defined]
    assert await _after(house, job) == 0


async def test_an_elastic_job_gives_up_its_tasks_on_the_tainted_node_only(house: House) -> None:
    await house.begin()
    job = await house.submit(short("elastic", replicas={"min": 2, "max": 8}, devices=1))
    await house.until(job, "running")
    live = await house.store.load_job(job)
    assert live is not None
    places = {key.index: task.placement.node for key, task in live.tasks.items() if task.placement}
    other = next(node for node in places.values() if node != places[0])
    house.engine.taint(other, OUT)  # type: ignore[attr-defined]
    while not (found := (await house.store.receipts(job=job)).items):
        await house.store.wakeup.wait(0.05)
    assert {key.index for key in found[0].tasks} == {index for index, node in places.items() if node == other}
    assert (await house.until(job, "running")).run.attempt == 0
