"""Two engines live beside each other: a job runs whole on one of them, and its commands go there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from corral.kernel.errors import CorralError
from corral.kernel.ids import AttemptId, JobId
from corral.model.records import ENDED_PHASES
from corral.model.store_writes import IntentKind
from tests.control.harness import House, PaperEngine, short


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, PaperEngine(nodes=1, devices=4))
    made.other_engines = (PaperEngine(nodes=1, devices=4, name="other"),)
    await made.open()
    yield made
    await made.close()


def _running(house: House) -> dict[str, set[JobId]]:
    """The jobs that run, by engine."""
    engines = (house.engine, *house.other_engines)
    return {engine.name: {JobId(attempt.partition(".")[0]) for attempt in engine.running} for engine in engines}


async def test_jobs_fill_both_engines_and_no_gang_spans_them(house: House) -> None:
    await house.begin()
    jobs = [await house.submit(short(f"job-{number}", replicas=2, devices=2)) for number in range(2)]
    for job in jobs:
        await house.until(job, "running")
    where = _running(house)
    assert sorted(map(len, where.values())) == [1, 1] and set().union(*where.values()) == set(jobs)


async def test_a_stop_reaches_the_engine_that_has_the_task(house: House) -> None:
    await house.begin()
    jobs = [await house.submit(short(f"job-{number}", devices=4)) for number in range(2)]
    for job in jobs:
        await house.until(job, "running")
    for job in jobs:
        await house.store.intend(job, IntentKind.STOP, {}, actor="ada", at=house.clock.now())
    for job in jobs:
        assert (await house.until(job, *ENDED_PHASES)).phase == "stopped"
    assert len(house.engine.stopped) == len(house.other_engines[0].stopped) == 1
    assert house.engine.stopped != house.other_engines[0].stopped


async def test_the_next_control_finds_the_tasks_of_both(house: House) -> None:
    await house.begin()
    jobs = [await house.submit(short(f"job-{number}", devices=4)) for number in range(2)]
    for job in jobs:
        await house.until(job, "running")
    await house.abandon()
    control = await house.begin()
    for engine in (house.engine, *house.other_engines):
        [attempt] = engine.running
        assert control.engine_of(attempt) == engine.name
        engine.end(attempt, 0)
    for job in jobs:
        assert (await house.until(job, *ENDED_PHASES)).phase == "succeeded"
    with pytest.raises(CorralError, match="No engine is known"):
        control.engine_of(AttemptId("nobody.0.worker.0.0"))
