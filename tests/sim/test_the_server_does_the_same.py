"""A mixed day of jobs takes the same course on the simulator's core as on a server's control with a real store."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from corral.control.core import Core, Machines, Recovered
from corral.control.core.configuration import Configured
from corral.control.core.driver import Driver, Work
from corral.control.core.machines import MachinesSeen
from corral.control.core.memory_store import MemoryStore
from corral.control.core.world import Job
from corral.kernel.agenda import Agenda
from corral.kernel.clock import VirtualClock
from corral.kernel.ids import AttemptId, JobId, parse_attempt_id
from corral.model.launch import Exited, TaskLaunch
from corral.model.records import rfc3339
from corral.model.store_writes import NewJob
from corral.scheduler import find_policy
from tests.control.harness import House, PaperEngine, new_job, short

BEGIN = 1_700_000_000.0
DAY = 86_400.0
COURSE = ("job.placed", "job.started", "job.preempted", "job.shrunk", "job.grown", "job.completed", "task.completed")
"""The kinds of events that are compared: placements, evictions and ends."""


class Planned(NamedTuple):
    """A job of the day."""

    new: NewJob
    seconds: float
    """How long each of its tasks runs."""


def a_mixed_day(jobs: int) -> list[Planned]:
    """Jobs of several users, sizes and priorities, some elastic, some with a declared duration; some must yield."""
    draw = random.Random(17)
    found = []
    for number in range(jobs):
        at = BEGIN + round(draw.random() * DAY * 0.6, 3)
        seconds = round(draw.uniform(600.0, 15_000.0), 3)
        least = draw.choice([1, 1, 1, 2, 3])
        more: dict[str, Any] = {"priority": draw.choice([1, 10, 10, 100])}
        if draw.random() < 0.5:
            more["maxDuration"] = f"{int(seconds * draw.uniform(1.0, 2.0)) + 1}s"
        replicas: int | dict[str, int] = {"min": least, "max": least + 2} if draw.random() < 0.3 else least
        text = short(f"job-{number}", replicas=replicas, devices=draw.choice([1, 1, 2, 4]), **more)
        found.append(Planned(new_job(text, at, number, draw.choice(["ada", "bob", "eve"])), seconds))
    return sorted(found, key=lambda each: each.new.created_at)


class TimedEngine(PaperEngine):
    """An engine whose tasks take the time of their jobs, by the test's clock."""

    def __init__(self, clock: VirtualClock, seconds: dict[JobId, float]) -> None:
        super().__init__(nodes=4, devices=4)
        self.clock, self.seconds = clock, seconds
        self.ends: Agenda[AttemptId] = Agenda()

    async def start(self, launch: TaskLaunch) -> None:
        """Start, and note when it will end."""
        now = self.started_at = self.clock.now()
        known = launch.attempt in self.running or launch.attempt in self.ended
        await super().start(launch)
        if not known:
            self.ends.add(now + self.seconds[parse_attempt_id(launch.attempt).job], launch.attempt)

    def end_due(self) -> None:
        """End the tasks whose time is over."""
        for attempt in self.ends.due(self.clock.now()):
            if attempt in self.running:
                self.end(attempt, 0)

    def end(self, attempt: AttemptId, code: int) -> None:
        """End a running task now."""
        del self.running[attempt]
        self._over(Exited(attempt, self.clock.now(), code))

    @property
    def quiet(self) -> bool:
        """Whether control has taken all its events."""
        return self._events.empty()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    clock = VirtualClock(BEGIN)
    made = House(tmp_path, TimedEngine(clock, {}))
    made.clock = clock  # type: ignore[assignment]
    await made.open()
    yield made
    await made.close()


async def settled(house: House) -> None:
    """Wait until control has folded and carried out all that is there at this time."""
    control, engine = house.control, house.engine
    assert isinstance(engine, TimedEngine)
    quiet = 0
    async with house.patience():
        while quiet < 5:
            due = control.core.next_wakeup()
            busy = control._events or control._taken or control._rung or control._awake.is_set()
            idle = not busy and control.dispatcher.idle and engine.quiet and (due is None or due > house.clock.now())
            quiet = quiet + 1 if idle else 0
            await asyncio.sleep(0.001)


async def on_a_server(house: House, day: list[Planned]) -> list[tuple[str, str, str, str]]:
    """Play the day on a real control loop; what happened to each job."""
    engine, clock = house.engine, house.clock
    assert isinstance(engine, TimedEngine) and isinstance(clock, VirtualClock)
    control = await house.begin()
    coming = list(day)
    while True:
        due = control.core.next_wakeup()
        times = [
            engine.ends.next_at,
            *(each.new.created_at for each in coming[:1]),
            *([due] if due is not None else []),
        ]
        at = min(times)
        if at == float("inf"):
            break
        clock.advance(max(0.0, at - clock.now()))
        while coming and coming[0].new.created_at <= clock.now():
            job = coming.pop(0)
            engine.seconds[job.new.id] = job.seconds
            await house.store.submit(job.new)
            async with house.patience():
                while job.new.id not in control.world.jobs:
                    await house.store.wakeup.wait(0.01)
        engine.end_due()
        control._awake.set()
        await settled(house)
    found = []
    for job in day:
        for event in await house.store.events_of(job.new.id, kinds=COURSE):
            found.append((job.new.name, event.kind, event.at, event.message))
    return found


def on_the_simulator(house: House, day: list[Planned]) -> list[tuple[str, str, str, str]]:
    """Play the day on the core alone, in virtual time; what happened to each job."""
    seconds = {job.new.id: job.seconds for job in day}

    def work(job: Job, attempt: AttemptId) -> Work:
        return Work(seconds[job.id])

    seen = MachinesSeen(asyncio.run(house.engine.inventory()))
    core = Core(Recovered(Configured(find_policy()), machines=(seen,)), house.launch_policy, Machines(), BEGIN)
    driver = Driver(core, MemoryStore(), work, BEGIN)
    for each in day:
        driver.at(each.new.created_at, each.new)
    driver.run()
    names = {job.new.id: job.new.name for job in day}
    return [
        (names[each.job], each.fact.kind, rfc3339(each.at), each.fact.message)
        for each in driver.store.facts
        if each.fact.kind in COURSE
    ]


async def test_a_mixed_day_takes_the_same_course(house: House) -> None:
    day = a_mixed_day(60)
    server = await on_a_server(house, day)
    simulated = await asyncio.to_thread(on_the_simulator, house, day)
    kinds = {kind for _, kind, _, _ in simulated}
    assert len(simulated) > 150
    assert {"job.placed", "job.preempted", "job.completed"} <= kinds, "the day is mixed"
    assert sorted(server) == sorted(simulated)
