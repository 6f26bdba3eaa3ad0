"""Tasks of a job without gang scheduling start, end and retry independently."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest_asyncio

from corral.kernel.ids import AttemptId, JobId
from corral.model.exits import NODE_LOST
from corral.model.records import ENDED_PHASES
from tests.control.harness import House, PaperEngine, short
from tests.spec.openpai_files import job_file, role_of

ROOM = 8
"""Devices of the engine."""


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path, PaperEngine())
    await house.open()
    await house.begin()
    yield house
    await house.close()


async def when(house: House, condition: Callable[[], bool]) -> None:
    """Wait until the condition is true."""
    async with house.patience():
        while not condition():
            await house.store.wakeup.wait(0.05)


def runs(house: House, job: JobId, role: str = "") -> list[AttemptId]:
    return sorted(each for each in house.engine.running if each.startswith(f"{job}.") and role in each)


def roles(name: str, counts: dict[str, int], **more: Any) -> str:
    """A job without gang scheduling whose tasks have one device each."""
    each = {"resources": {"cpu": 1, "devices": 1}, "command": ["true"]}
    shaped = {role: {**each, "replicas": count} for role, count in counts.items()}
    return json.dumps({"name": name, "framework": "shell", "gang": False, "roles": shaped, **more})


async def test_a_job_larger_than_the_machines_runs_task_by_task_to_its_end(house: House) -> None:
    gang = await house.submit(short("gang", replicas=ROOM + 2, devices=1))
    loose = await house.submit(short("loose", replicas=ROOM + 2, devices=1, gang=False))
    await when(house, lambda: len(runs(house, loose)) == ROOM)
    assert not runs(house, gang)
    ended = 0
    while ended < ROOM + 2:
        await when(house, lambda: bool(runs(house, loose)))
        house.engine.end(runs(house, loose)[0], 0)
        ended += 1
        left = min(ROOM, ROOM + 2 - ended)
        await when(house, lambda left=left: len(runs(house, loose)) == left)  # type: ignore[misc]
    assert (await house.until(loose, *ENDED_PHASES)).phase == "succeeded"
    tasks = {attempt.rpartition(".")[0] for attempt in house.engine.started if attempt.startswith(loose)}
    assert len(tasks) == ROOM + 2


async def test_every_role_comes_to_its_turn(house: House) -> None:
    job = await house.submit(roles("many", {"first": ROOM, "second": ROOM}))
    await when(house, lambda: len(runs(house, job)) == ROOM)
    for attempt in runs(house, job):
        house.engine.end(attempt, 0)
    await when(house, lambda: len(runs(house, job, "second")) == ROOM)
    for attempt in runs(house, job):
        house.engine.end(attempt, 0)
    assert (await house.until(job, *ENDED_PHASES)).phase == "succeeded"


async def test_a_role_that_has_no_place_keeps_no_other_role_waiting(house: House) -> None:
    others = await house.submit(short("others", replicas=2, devices=ROOM // 2 - 1))
    await when(house, lambda: len(runs(house, others)) == 2)
    large, small = ({"resources": {"cpu": 1, "devices": devices}, "command": ["true"]} for devices in (ROOM // 2, 1))
    shaped = {"large": large, "small": {**small, "replicas": 2}}
    loose = {"name": "loose", "framework": "shell", "gang": False, "roles": shaped}
    job = await house.submit(json.dumps(loose))
    await when(house, lambda: len(runs(house, job, "small")) == 2)
    assert not runs(house, job, "large")
    for attempt in (*runs(house, others), *runs(house, job)):
        house.engine.end(attempt, 0)
    await when(house, lambda: len(runs(house, job, "large")) == 1)
    house.engine.end(runs(house, job)[0], 0)
    assert (await house.until(job, *ENDED_PHASES)).phase == "succeeded"


async def test_the_first_failure_ends_it_where_its_policy_says_so(house: House) -> None:
    job = await house.submit(short("strict", replicas=ROOM + 2, devices=1, gang=False))
    await when(house, lambda: len(runs(house, job)) == ROOM)
    house.engine.end(runs(house, job)[0], 3)
    record = await house.until(job, *ENDED_PHASES)
    assert record.phase == "failed" and record.summary.exit is not None and record.summary.exit.code == 3


async def test_whoever_is_more_important_takes_single_tasks_and_the_others_run_on(house: House) -> None:
    low = await house.submit(short("low", replicas=ROOM, devices=1, gang=False, priority="test"))
    await when(house, lambda: len(runs(house, low)) == ROOM)
    high = await house.submit(short("high", devices=2, priority="prod"))
    await house.until(high, "running")
    assert len(runs(house, low)) == ROOM - 2
    house.engine.end(runs(house, high)[0], 0)
    await when(house, lambda: len(runs(house, low)) == ROOM)
    live = await house.store.load_job(low)
    assert live is not None and live.run.attempt == 0


async def test_openpais_gang_allocation_false_is_this_with_retries_of_its_own(house: House) -> None:
    role = role_of(
        instances=ROOM + 2, taskRetryCount=1, resourcePerInstance={"cpu": 1, "memoryMB": 64, "gpu": 1},
        completion={"minSucceededInstances": -1}, extraContainerOptions={"shmMB": 0},
    )  # fmt: skip
    job = await house.submit(job_file(taskRoles={"worker": role}, extras={"gangAllocation": False}))
    await when(house, lambda: len(runs(house, job)) == ROOM)
    first = runs(house, job)[0]
    house.engine.end(first, NODE_LOST)
    again = f"{first.rpartition('.')[0]}.1"
    others = set(runs(house, job))
    await when(house, lambda: any(each not in others for each in runs(house, job)))
    while again not in house.engine.started:
        for attempt in runs(house, job)[:1]:
            house.engine.end(attempt, 0)
        await when(house, lambda: len(runs(house, job)) == ROOM or again in house.engine.started)
    live = await house.store.load_job(job)
    assert live is not None and live.run.attempt == 0
