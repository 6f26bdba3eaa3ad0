"""Preemptions, drains, suspensions, edits and faults in random order, on the real shell; `core/` has more of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from corral.kernel.draw import draw_between
from corral.kernel.ids import JobId, parse_attempt_id
from corral.model.cordons import Cordon, Drain
from corral.model.store_writes import IntentKind
from corral.spec.job_reader import load_job
from tests.control.harness import House, PaperEngine, short

STEPS = 60
NODES = 3


class Chaos:
    """Makes random changes, the same ones for the same seed."""

    def __init__(self, house: House, seed: int) -> None:
        self.house = house
        self.seed = seed
        self.drawn = 0
        self.jobs: list[JobId] = []

    def pick(self, count: int) -> int:
        self.drawn += 1
        return int(draw_between(0, count, str(self.seed), str(self.drawn)))

    async def yield_once(self) -> None:
        """Run and suspend one job first, so that there is a receipt whatever follows."""
        job = await self.house.submit(short("first", replicas=1, devices=1))
        self.jobs.append(job)
        while not self.house.engine.running:
            await self.house.store.wakeup.wait(0.02)
        await self.house.store.add_intent(job, IntentKind.SUSPEND, {}, actor="ada", at=self.house.clock.now())
        while not (await self.house.store.receipts(job=job, limit=10)).items:
            await self.house.store.wakeup.wait(0.02)

    async def wish(self, *kinds: IntentKind) -> None:
        if self.jobs:
            job = self.jobs[self.pick(len(self.jobs))]
            kind = kinds[self.pick(len(kinds))]
            await self.house.store.add_intent(job, kind, {}, actor="ada", at=self.house.clock.now())

    async def edit(self) -> None:
        if self.jobs:
            terms: dict[str, object] = {"priority": ("test", "prod", "oppo", "7")[self.pick(4)]}
            job = self.jobs[self.pick(len(self.jobs))]
            await self.house.store.add_intent(job, IntentKind.EDIT, terms, actor="ada", at=self.house.clock.now())

    async def submit(self) -> None:
        number = len(self.jobs)
        size = 1 + self.pick(NODES)
        replicas = {"min": 1 + self.pick(size), "max": size} if self.pick(2) else size
        priority = ("test", "prod", "oppo", "crit")[self.pick(4)]
        file = short(f"job-{number}", replicas=replicas, devices=1 + self.pick(3), priority=priority)  # type: ignore[arg-type]
        self.jobs.append(await self.house.submit(file))

    async def close_node(self) -> None:
        how = (Drain.NONE, Drain.NOW, Drain.AFTER_JOBS)[self.pick(3)]
        node = f"local/node{self.pick(NODES)}"
        await self.house.store.put_cordon(Cordon(node, "root", "", self.house.clock.now(), how, None))

    async def open_node(self) -> None:
        node = f"local/node{self.pick(NODES)}"
        await self.house.store.remove_cordon(node, actor="root", at=self.house.clock.now())

    def end_one(self) -> None:
        running = sorted(self.house.engine.running)
        if running:
            self.house.engine.end(running[self.pick(len(running))], (0, 137, -1001)[self.pick(3)])

    async def kill(self) -> None:
        await self.house.abandon()
        await self.house.begin()

    async def step(self) -> None:
        match self.pick(13):
            case 0 | 1 | 2 | 3:
                await self.submit()
            case 4 | 5:
                await self.wish(IntentKind.SUSPEND, IntentKind.RESUME)
            case 6:
                await self.close_node()
            case 7:
                await self.open_node()
            case 8 | 9:
                self.end_one()
            case 10:
                await self.kill()
            case 11:
                await self.edit()
            case _:
                await self.house.store.wakeup.wait(0.02)
        self.check_devices()

    def check_devices(self) -> None:
        """Check that no device has two tasks."""
        held = [
            (launch.node, device.index) for launch in self.house.engine.running.values() for device in launch.devices
        ]
        assert len(held) == len(set(held))

    async def settle(self) -> None:
        """Allow everything again, and end running tasks well, until no job is left."""
        for number in range(NODES):
            await self.house.store.remove_cordon(f"local/node{number}", actor="root", at=self.house.clock.now())
        for job in self.jobs:
            await self.house.store.add_intent(job, IntentKind.RESUME, {}, actor="ada", at=self.house.clock.now())
        for job in self.jobs:
            while (record := await self.house.store.find_job(job)) is not None and record.live:
                for attempt in sorted(self.house.engine.running):
                    self.house.engine.end(attempt, 0)
                await self.house.store.wakeup.wait(0.02)


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path, PaperEngine(nodes=NODES))
    await house.open()
    yield house
    await house.close()


@pytest.mark.parametrize("seed", range(1))
async def test_nothing_runs_twice_or_is_forgotten_and_every_yielding_has_a_receipt(house: House, seed: int) -> None:
    await house.begin()
    chaos = Chaos(house, seed)
    await chaos.yield_once()
    for _ in range(STEPS):
        await chaos.step()
    await chaos.settle()
    assert max(house.engine.most_instances.values(), default=1) == 1
    assert len(house.engine.started) == len(set(house.engine.started))
    yields = 0
    for job in chaos.jobs:
        record = await house.store.find_job(job)
        assert record is not None and not record.live
        assert load_job(record.doc).priority == record.priority == record.summary.priority
        found = (await house.store.receipts(job=job, limit=1000)).items
        assert len({each.number for each in found}) == len(found) <= record.run.yields
        assert all(each.over or each.returned_at is not None for each in found)
        yields += len(found)
        history = {each.id for each in (await house.store.job_attempts(job, "worker", 0, limit=1000)).items}
        started = [one for one in house.engine.started if parse_attempt_id(one).job == job]
        assert {one for one in started if parse_attempt_id(one).index == 0} <= history
    assert yields
    assert await house.store.open_receipts() == []
    assert house.control.world.cluster.consistent()
    await house.abandon()
    await house.begin()
    assert not house.control.world.jobs and house.control.world.cluster.holders() == {}
