"""What a job's program reports of its work reaches policies and people, and survives a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from corral.kernel.ids import AttemptId, JobId, attempt_id
from corral.model.runs import TaskStep, WorkReport
from corral.model.store_writes import IntentKind, JobRecord
from corral.store.job_writes import REPORT_SECONDS
from tests.control.harness import House, PaperEngine, short

WORK = WorkReport(0.0, 0.25, step=5.0, steps=20.0, throughput=12.0, loss=0.5, gradient_noise=900.0, batch_size=64.0)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, PaperEngine(nodes=2, devices=4))
    await made.open()
    yield made
    await made.close()


def first_task(job: JobId, attempt: int = 0) -> AttemptId:
    return attempt_id(job, attempt, "worker", 0, 0)


async def reported(house: House, job: JobId, at: float) -> JobRecord:
    """Report work as the job's runtime does, and wait until control has stored it."""
    assert await house.store.work_reported(first_task(job), msgspec.structs.replace(WORK, at=at))
    async with house.patience():
        while True:
            record = await house.store.find_job(job)
            assert record is not None
            if record.run.report is not None and record.run.report.at == at:
                return record
            await house.store.wakeup.wait(0.05)


@pytest.mark.parametrize("restart", [False, True])
async def test_policies_read_what_a_job_reported_restart_or_not(house: House, restart: bool) -> None:
    control = await house.begin()
    job = await house.submit(short("trainer", devices=2, replicas=3))
    await house.until(job, "running")
    at = house.clock.now() + 60
    record = await reported(house, job, at)
    assert record.run.report == msgspec.structs.replace(WORK, at=at)
    if restart:
        await house.abandon()
        control = await house.begin()
    found = control.world.cluster.history.of(job, at)
    assert (found.progress, dict(found.throughput)) == (0.25, {(6, 2): 12.0})
    assert (found.gradient_noise, found.batch_size) == (900.0, 64.0)


async def test_a_throughput_right_after_a_change_of_size_counts_for_no_size(house: House) -> None:
    control = await house.begin()
    job = await house.submit(short("trainer", devices=2))
    record = await house.until(job, "running")
    assert record.run.placed_at is not None
    await reported(house, job, record.run.placed_at + 1)
    found = control.world.cluster.history.of(job, house.clock.now())
    assert (found.progress, dict(found.throughput)) == (0.25, {})


async def test_a_report_of_an_earlier_attempt_or_soon_after_another_is_not_stored(house: House) -> None:
    await house.begin()
    job = await house.submit(short("trainer"))
    await house.until(job, "running")
    at = house.clock.now()
    await reported(house, job, at)

    async def again(attempt: int, later: float, progress: float) -> bool:
        report = msgspec.structs.replace(WORK, at=at + later, progress=progress)
        return await house.store.work_reported(first_task(job, attempt), report)

    assert not await again(0, REPORT_SECONDS - 0.1, 0.5)
    assert await again(0, REPORT_SECONDS, 0.5)
    assert await again(0, REPORT_SECONDS, 1.0), "finished work is always told"
    assert not await again(0, REPORT_SECONDS + 1, 1.0)
    soon = msgspec.structs.replace(WORK, at=at + REPORT_SECONDS + 1)
    later = at + 2 * REPORT_SECONDS
    assert not await house.store.work_reported(first_task(job, 0), soon, told_at=later - 0.1)
    assert await house.store.work_reported(first_task(job, 0), soon, told_at=later), "said soon after, and told later"
    assert not await house.store.work_reported(first_task(job, 0), soon, told_at=later + 100), "it is known"
    same, told = msgspec.structs.replace(soon, at=soon.at + 0.004), later + REPORT_SECONDS
    assert not await house.store.work_reported(first_task(job, 0), same, told_at=told), "it is repeated"
    others = [TaskStep("worker", 1, 4.0, told, None)]
    assert await house.store.work_reported(first_task(job, 0), same, others=others, told_at=told)
    told += REPORT_SECONDS
    other = msgspec.structs.replace(same, at=same.at + 0.004, loss=0.25)
    assert await house.store.work_reported(first_task(job, 0), other, told_at=told)
    await house.store.add_intent(job, IntentKind.RESTART, {}, actor="ada", at=house.clock.now())
    async with house.patience():
        while (await house.until(job, "running")).run.attempt == 0:
            await house.store.wakeup.wait(0.05)
    assert await again(1, 0.0, 0.1)
    assert not await again(0, 1000.0, 0.9)
