"""Two engines live beside each other: a job runs whole on one of them, and its commands go there."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from corral.kernel.errors import CorralError, Unavailable
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
        await house.store.add_intent(job, IntentKind.STOP, {}, actor="ada", at=house.clock.now())
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


async def test_an_engine_that_cannot_be_reached_at_the_start_holds_up_no_other(house: House) -> None:
    other = house.other_engines[0]
    other.unreachable = "The cluster does not answer."
    control = await house.begin()
    jobs = [await house.submit(short(f"job-{number}", devices=4)) for number in range(2)]
    await house.until(jobs[0], "running")
    await house.explained(jobs[1])
    assert _running(house)["local"] == {jobs[0]} and "other" in control.engine_set.away
    other.unreachable = ""
    await house.until(jobs[1], "running")
    assert _running(house) == {"local": {jobs[0]}, "other": {jobs[1]}}


async def test_tasks_of_an_engine_that_is_away_are_not_lost_and_its_commands_wait(house: House) -> None:
    await house.begin()
    jobs = [await house.submit(short(f"job-{number}", devices=4)) for number in range(2)]
    for job in jobs:
        await house.until(job, "running")
    await house.abandon()
    other = house.other_engines[0]
    other.unreachable = "The cluster does not answer."
    await house.begin()
    [there] = other.running
    for job in jobs:
        await house.store.add_intent(job, IntentKind.STOP, {}, actor="ada", at=house.clock.now())
    [ended] = [job for job in jobs if not there.startswith(job)]
    assert (await house.until(ended, *ENDED_PHASES)).phase == "stopped"
    [away] = [job for job in jobs if there.startswith(job)]
    assert (await house.until(away, "stopping")).phase == "stopping" and other.stopped == []
    other.unreachable = ""
    assert (await house.until(away, *ENDED_PHASES)).phase == "stopped"
    assert other.stopped == [there]


async def test_an_engine_alone_that_cannot_be_reached_ends_the_start(tmp_path: Path) -> None:
    house = House(tmp_path, PaperEngine())
    house.engine.unreachable = "The cluster does not answer."
    await house.open()
    with pytest.raises(ExceptionGroup) as caught:
        await house.begin()
    assert caught.group_contains(Unavailable, match="does not answer")
    await house.close()


async def test_engines_of_which_none_can_be_reached_end_the_start(house: House) -> None:
    for engine in (house.engine, *house.other_engines):
        engine.unreachable = "The cluster does not answer."
    with pytest.raises(ExceptionGroup) as caught:
        await house.begin()
    assert caught.group_contains(Unavailable, match="does not answer")


async def test_tasks_of_an_engine_that_was_given_up_for_good_are_started_again_on_another(house: House) -> None:
    await house.begin()
    jobs = [await house.submit(short(f"job-{number}", devices=4)) for number in range(2)]
    for job in jobs:
        await house.until(job, "running")
    await house.abandon()
    gone = _running(house)["other"]
    third = PaperEngine(nodes=1, devices=4, name="third")
    house.other_engines = (third,)
    await house.begin()
    async with house.patience():
        while not third.running:
            await house.store.wakeup.wait(0.05)
    assert _running(house)["third"] == gone


class HintedEngine(PaperEngine):
    """An engine that keeps something for whole jobs."""

    def __init__(self, name: str) -> None:
        super().__init__(nodes=2, devices=4, name=name)
        self.told: list[tuple[str, frozenset[JobId]]] = []

    def job_over(self, job: JobId) -> None:
        self.told.append(("over", frozenset({job})))
        raise RuntimeError("no hint may end control")

    def live_jobs(self, jobs: frozenset[JobId]) -> None:
        self.told.append(("live", jobs))


async def test_an_engine_is_told_how_large_a_gang_is_and_when_its_job_is_over(tmp_path: Path) -> None:
    engine = HintedEngine("local")
    house = House(tmp_path, engine)
    await house.open()
    await house.begin()
    job = await house.submit(short("gang", replicas=3, devices=2))
    async with house.patience():
        while len(engine.running) != 3:
            await house.store.wakeup.wait(0.05)
    parts = {launch.gang for launch in engine.running.values()}
    assert len(parts) == 1, "each start carries the whole gang"
    [gang] = parts
    assert sum(part.tasks for part in gang) == 3 and {part.role for part in gang} == {"worker"}
    assert {part.node: part.tasks for part in gang} == Counter(launch.node for launch in engine.running.values())
    await house.abandon()
    await house.begin()
    for attempt in list(engine.running):
        engine.end(attempt, 0)
    await house.until(job, *ENDED_PHASES)
    async with house.patience():
        while len(engine.told) < 3:
            await house.store.wakeup.wait(0.05)
    assert engine.told == [("live", frozenset()), ("live", frozenset({job})), ("over", frozenset({job}))]
    await house.close()
