"""A job's reported checkpoint decides who is preempted, appears on the receipt, and survives every restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from corral.control.core.receipts import HeldDevices
from corral.kernel.ids import AttemptId, JobId, TaskKey, attempt_id
from corral.model.receipts import Receipt
from corral.model.store_writes import IntentKind, JobRecord
from tests.control.harness import House, PaperEngine, short


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, PaperEngine(nodes=1, devices=4))
    await made.open()
    yield made
    await made.close()


def first_task(job: JobId, attempt: int = 0) -> AttemptId:
    return attempt_id(job, attempt, "worker", 0, 0)


async def running(house: House, name: str, devices: int = 2, priority: int = 10) -> JobId:
    job = await house.submit(short(name, devices=devices, priority=priority))
    await house.until(job, "running")
    return job


async def saved(house: House, job: JobId, at: float) -> JobRecord:
    """Report a checkpoint as the job's runtime does, and wait until control has stored it."""
    assert await house.store.checkpointed(first_task(job), at)
    async with house.patience():
        while True:
            record = await house.store.find_job(job)
            assert record is not None
            if record.run.checkpointed_at == at:
                return record
            await house.store.wakeup.wait(0.05)


async def receipt_of(house: House, job: JobId) -> Receipt:
    async with house.patience():
        while not (found := (await house.store.receipts(job=job)).items):
            await house.store.wakeup.wait(0.05)
    return found[0]


@pytest.mark.parametrize("restart", [False, True])
async def test_of_two_equal_jobs_the_one_that_saved_its_work_yields_restart_or_not(house: House, restart: bool) -> None:
    control = await house.begin()
    first, second = await running(house, "first"), await running(house, "second")
    await saved(house, first, house.clock.now())
    known = control.world.cluster.gangs.columns()
    if restart:
        await house.abandon()
        control = await house.begin()
        assert control.world.cluster.gangs.columns() == known
    urgent = await running(house, "urgent", priority=100)
    receipt = await receipt_of(house, first)
    assert (receipt.by_job, receipt.rule) == (urgent, "priority")
    assert receipt.cost_device_seconds < 60, "since the checkpoint: the engine says that the task runs since 1970"
    assert not (await house.store.receipts(job=second)).items


async def test_a_word_that_came_while_nobody_led_counts_and_one_that_comes_late_does_not(house: House) -> None:
    await house.begin()
    job = await running(house, "job")
    await house.abandon()
    at = house.clock.now()
    assert await house.store.checkpointed(first_task(job), at)
    await house.begin()
    async with house.patience():
        while (record := await house.until(job, "running")).run.checkpointed_at != at:
            await house.store.wakeup.wait(0.05)
    await house.store.add_intent(job, IntentKind.RESTART, {}, actor="ada", at=house.clock.now())
    async with house.patience():
        while (record := await house.until(job, "running")).run.attempt == 0:
            await house.store.wakeup.wait(0.05)
    assert record.run.checkpointed_at is None, "a new attempt has saved nothing"
    assert await house.store.checkpointed(first_task(job), at + 100)
    await running(house, "other")
    assert (await house.until(job, "running")).run.checkpointed_at is None, "it was of the attempt before"


async def test_a_receipt_says_when_it_is_likely_back_or_that_nobody_knows(house: House) -> None:
    await house.begin()
    house.engine.started_at = house.clock.now()
    low = await house.submit(short("low", devices=4, priority=1, checkpoint={"graceSeconds": 20}))
    await house.until(low, "running")
    urgent = await house.submit(short("urgent", devices=4, priority=100, maxDuration="10m"))
    await house.until(urgent, "running")
    receipt = await receipt_of(house, low)
    assert receipt.back_at is not None and receipt.back_at == pytest.approx(receipt.at + 600, abs=1)
    await house.store.add_intent(urgent, IntentKind.STOP, {}, actor="ada", at=house.clock.now())
    await house.until(low, "running")
    await running(house, "endless", devices=4, priority=100)
    receipt = await receipt_of(house, low)
    assert receipt.number == 2 and receipt.back_at is None


async def test_tasks_that_are_given_up_cost_the_work_that_is_not_saved(house: House) -> None:
    await house.begin()
    elastic = await house.submit(short("elastic", replicas={"min": 1, "max": 4}, devices=1))
    await house.until(elastic, "running")
    at = house.clock.now() - 50
    await saved(house, elastic, at)
    await running(house, "other", devices=2)
    receipt = await receipt_of(house, elastic)
    assert (receipt.rule, len(receipt.tasks), receipt.devices) == ("shrink", 2, 2)
    assert receipt.cost_device_seconds == pytest.approx(2 * (receipt.at - at), abs=1e-3)


def test_the_cost_of_a_task_counts_from_its_start_or_the_checkpoint_after_it() -> None:
    tasks = {TaskKey("a", 0): (2000, 10.0), TaskKey("a", 1): (500, 70.0), TaskKey("a", 2): (1000, None)}
    assert [HeldDevices(0, saved_at, tasks).cost(tasks, 100.0) for saved_at in (0.0, 60.0, 90.0, 101.0)] == [
        195.0,
        95.0,
        25.0,
        0.0,
    ]
