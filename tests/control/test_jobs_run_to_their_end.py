"""Submitted jobs run and end with their own exit code, and survive every restart of control."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from corral.kernel.errors import Unavailable
from corral.model.exits import NODE_LOST
from corral.model.records import ENDED_PHASES
from corral.model.store_writes import IntentKind
from tests.control.harness import House, PaperEngine, short


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path, PaperEngine())
    await house.open()
    yield house
    await house.close()


async def test_a_job_ends_with_the_code_of_its_task(house: House) -> None:
    await house.begin()
    good = await house.submit(short("good", end_with=0))
    bad = await house.submit(short("bad", end_with=3))

    assert (await house.until(good, *ENDED_PHASES)).phase == "succeeded"
    failed = await house.until(bad, *ENDED_PHASES)
    assert failed.phase == "failed"
    assert failed.summary.exit is not None
    assert failed.summary.exit.code == 3


async def test_a_gang_starts_whole_or_waits_with_its_reason(house: House) -> None:
    await house.begin()
    first = await house.submit(short("first", replicas=6, devices=1))
    await house.until(first, "running")
    second = await house.submit(short("second", replicas=4, devices=1))
    record = await house.until(second, "waiting")
    while record.summary.waiting is None:
        await house.store.wakeup.wait(0.05)
        record = await house.until(second, "waiting")

    assert "4" in record.summary.waiting.message
    assert not any(attempt.startswith(second) for attempt in house.engine.started)

    await house.store.add_intent(first, IntentKind.STOP, {}, actor="ada", at=house.clock.now())
    assert (await house.until(first, *ENDED_PHASES)).phase == "stopped"
    await house.until(second, "running")
    async with house.patience():
        while sum(attempt.startswith(second) for attempt in house.engine.started) != 4:
            await house.store.wakeup.wait(0.05)


async def test_what_was_submitted_while_control_was_away_runs_when_it_is_back(house: House) -> None:
    job = await house.submit(short("early", end_with=0))
    await house.begin()
    assert (await house.until(job, *ENDED_PHASES)).phase == "succeeded"


async def test_a_start_that_was_stored_and_not_done_is_done_once_after_a_crash(house: House) -> None:
    def refuse(call: str) -> None:
        raise Unavailable("away", "The engine is away.")

    house.engine.fault = refuse
    await house.begin()
    job = await house.submit(short("kept", end_with=0))
    await house.until(job, "starting")
    await house.abandon()
    house.engine.fault = lambda call: None
    await house.begin()

    assert (await house.until(job, *ENDED_PHASES)).phase == "succeeded"
    assert len(house.engine.started) == 1


async def test_a_restart_that_was_carried_out_is_not_carried_out_again_by_the_next_control(house: House) -> None:
    await house.begin()
    job = await house.submit(short("twice", end_with=0))
    await house.until(job, *ENDED_PHASES)
    await house.store.add_intent(job, IntentKind.RESTART, {}, actor="ada", at=house.clock.now())
    async with house.patience():
        while len(house.engine.started) < 2:
            await house.store.wakeup.wait(0.05)
    assert (await house.until(job, *ENDED_PHASES)).run.attempt == 1
    await house.abandon()

    await house.begin()
    later = await house.submit(short("later", end_with=0))
    await house.until(later, *ENDED_PHASES)
    kept = await house.store.find_job(job)
    assert kept is not None and (kept.phase, kept.run.attempt) == ("succeeded", 1)
    assert house.engine.started == [f"{job}.0.worker.0.0", f"{job}.1.worker.0.0", f"{later}.0.worker.0.0"]


async def test_an_end_that_nobody_folded_is_folded_after_a_crash(house: House) -> None:
    await house.begin()
    job = await house.submit(short("running"))
    await house.until(job, "running")
    await house.abandon()
    [attempt] = house.engine.running
    house.engine.end(attempt, 7)
    await house.begin()

    record = await house.until(job, *ENDED_PHASES)
    assert record.summary.exit is not None
    assert record.summary.exit.code == 7


async def test_the_rebuilt_world_equals_the_kept_one(house: House) -> None:
    control = await house.begin()
    jobs = [await house.submit(short(f"job-{number}", replicas=2, devices=1)) for number in range(3)]
    for job in jobs:
        await house.until(job, "running")
    kept = control.world.cluster.digest()
    await house.abandon()
    rebuilt = (await house.begin()).world.cluster.digest()
    assert rebuilt == kept


async def test_a_job_waits_for_the_success_of_another(house: House) -> None:
    await house.begin()
    first = await house.submit(short("first"))
    await house.until(first, "running")
    after = await house.submit(short("after", end_with=0, dependsOn=[{"job": first}]))
    never = await house.submit(short("never", end_with=0, dependsOn=[{"job": after}, {"job": first}]))
    assert (await house.until(after, "waiting")).phase == "waiting"
    [attempt] = house.engine.running
    house.engine.end(attempt, 1)

    ended = await house.until(after, *ENDED_PHASES)
    assert ended.phase == "stopped"
    assert ended.summary.exit is not None
    assert ended.summary.exit.message == "first did not succeed"
    assert (await house.until(never, *ENDED_PHASES)).phase == "stopped"
    assert len(house.engine.started) == 1


async def test_a_job_may_wait_for_any_end_of_another(house: House) -> None:
    await house.begin()
    first = await house.submit(short("first"))
    await house.until(first, "running")
    after = await house.submit(short("after", end_with=0, dependsOn=[{"job": first, "condition": "ended"}]))
    [attempt] = house.engine.running
    house.engine.end(attempt, 1)
    assert (await house.until(after, *ENDED_PHASES)).phase == "succeeded"


async def test_a_scaled_job_gains_and_loses_tasks_while_it_runs(house: House) -> None:
    await house.begin()
    text = short("elastic", devices=1).replace('"replicas": 1', '"replicas": {"min": 1, "max": 4}')
    job = await house.submit(text)
    await house.until(job, "running")
    async with house.patience():
        while len(house.engine.running) != 4:
            await house.store.wakeup.wait(0.05)
    await house.store.add_intent(job, IntentKind.SCALE, {"role": "worker", "replicas": 2}, actor="ada", at=1.0)
    while len(house.engine.running) != 2:
        await house.store.wakeup.wait(0.05)
    await house.store.add_intent(job, IntentKind.SCALE, {"role": "worker", "replicas": 3}, actor="ada", at=1.0)
    while len(house.engine.running) != 3:
        await house.store.wakeup.wait(0.05)
    assert all(most == 1 for most in house.engine.most_instances.values())


async def test_a_task_that_is_placed_anew_keeps_its_rank_though_a_peer_is_over(house: House) -> None:
    await house.begin()
    text = short("ranks", replicas=3, devices=1).replace('"replicas": 3', '"replicas": 3, "retry": 3')
    job = await house.submit(text)
    await house.until(job, "running")
    while len(house.engine.running) != 3:
        await house.store.wakeup.wait(0.05)
    ranks = {attempt: launch.env["CORRAL_RANK"] for attempt, launch in house.engine.running.items()}
    first, middle, last = sorted(ranks)
    house.engine.end(first, 0)
    house.engine.end(middle, NODE_LOST)
    while set(house.engine.running) <= {middle, last}:
        await house.store.wakeup.wait(0.05)
    (again,) = set(house.engine.running) - {last}
    told = house.engine.running[again].env
    assert (again.rpartition(".")[0], told["CORRAL_RANK"]) == (middle.rpartition(".")[0], ranks[middle])
    assert told["CORRAL_WORLD_SIZE"] == "3"
