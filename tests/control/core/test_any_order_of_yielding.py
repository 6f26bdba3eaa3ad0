"""Preemptions, drains, suspensions, edits and faults in random order: no job is lost, run twice or left unexplained."""

from __future__ import annotations

from math import inf

import pytest

from corral.control.core.driver import Work
from corral.kernel.draw import draw_between
from corral.kernel.ids import AttemptId, JobId
from corral.launcher import LaunchPolicy
from corral.model.cordons import Cordon, Drain
from corral.model.store_writes import IntentKind
from corral.spec.job_reader import load_job
from tests.control.core.virtual import Played
from tests.control.harness import short

STEPS = 60
NODES = 3


class Chaos:
    """Makes random changes, the same ones for the same seed; after each, time passes."""

    def __init__(self, seed: int) -> None:
        self.played = Played(NODES, policy=LaunchPolicy(conflict_delay=(0.0, 0.0), retry_first=0.0), usual=Work(inf))
        self.seed = seed
        self.drawn = 0
        self.jobs: list[JobId] = []
        self.started: set[AttemptId] = set()
        self.cordons: dict[str, Cordon] = {}

    def pick(self, count: int) -> int:
        self.drawn += 1
        return int(draw_between(0, count, str(self.seed), str(self.drawn)))

    def yield_once(self) -> None:
        """Run and suspend one job first, so that there is a receipt whatever follows."""
        job = self.played.submit_file(short("first", replicas=1, devices=1))
        self.jobs.append(job)
        assert self.played.running(job)
        self.played.ask(job, IntentKind.SUSPEND)
        assert self.played.receipts(job)

    def ask(self, *kinds: IntentKind) -> None:
        if self.jobs:
            self.played.ask(self.jobs[self.pick(len(self.jobs))], kinds[self.pick(len(kinds))])

    def edit(self) -> None:
        if self.jobs:
            priority = ("test", "prod", "oppo", "7")[self.pick(4)]
            self.played.ask(self.jobs[self.pick(len(self.jobs))], IntentKind.EDIT, priority=priority)

    def submit(self) -> None:
        number = len(self.jobs)
        size = 1 + self.pick(NODES)
        replicas = {"min": 1 + self.pick(size), "max": size} if self.pick(2) else size
        priority = ("test", "prod", "oppo", "crit")[self.pick(4)]
        file = short(f"job-{number}", replicas=replicas, devices=1 + self.pick(3), priority=priority)  # type: ignore[arg-type]
        self.jobs.append(self.played.submit_file(file))

    def close_node(self) -> None:
        how = (Drain.NONE, Drain.NOW, Drain.AFTER_JOBS)[self.pick(3)]
        node = f"local/node{self.pick(NODES)}"
        self.cordons[node] = Cordon(node, "root", "", self.played.driver.now, how, None)
        self.played.close(*self.cordons.values())

    def open_node(self) -> None:
        self.cordons.pop(f"local/node{self.pick(NODES)}", None)
        self.played.close(*self.cordons.values())

    def end_one(self) -> None:
        running = sorted(self.played.driver.running)
        if running:
            self.played.end(running[self.pick(len(running))], code=(0, 137, -1001)[self.pick(3)])

    def step(self) -> None:
        match self.pick(13):
            case 0 | 1 | 2 | 3:
                self.submit()
            case 4 | 5:
                self.ask(IntentKind.SUSPEND, IntentKind.RESUME)
            case 6:
                self.close_node()
            case 7:
                self.open_node()
            case 8 | 9:
                self.end_one()
            case 10:
                self.played.begin_anew()
            case 11:
                self.edit()
            case _:
                pass
        self.pass_time()

    def pass_time(self) -> None:
        """Go on for some seconds, and check that no device and no task has two attempts."""
        self.played.driver.run(self.played.driver.now + self.pick(20))
        self.started |= self.played.driver.running
        holders: dict[tuple[str, int], AttemptId] = {}
        tasks = set[str]()
        for attempt in self.played.driver.running:
            assert attempt.rpartition(".")[0] not in tasks
            tasks.add(attempt.rpartition(".")[0])
        for job in self.played.core.world.jobs.values():
            for task in job.tasks.values():
                attempt = job.run.attempt_of(task)
                if attempt in self.played.driver.running:
                    assert task.placement is not None
                    for device in task.placement.devices:
                        assert holders.setdefault((task.placement.node, device), attempt) == attempt
        assert set(holders.values()) == self.played.driver.running

    def settle(self) -> None:
        """Allow everything again, and end running tasks well, until no job is left."""
        self.played.close()
        for job in self.jobs:
            self.played.ask(job, IntentKind.RESUME)
        for _ in range(100 * len(self.jobs)):
            if not self.played.core.world.jobs:
                return
            self.played.end(*sorted(self.played.driver.running))
            self.pass_time()
        raise AssertionError(f"these jobs never end: {sorted(self.played.core.world.jobs)}")


@pytest.mark.parametrize("seed", range(6))
def test_nothing_runs_twice_or_is_forgotten_and_every_yielding_has_a_receipt(seed: int) -> None:
    chaos = Chaos(seed)
    chaos.yield_once()
    for _ in range(STEPS):
        chaos.step()
    chaos.settle()
    played, yields = chaos.played, 0
    facts = {each.fact.attempt for each in played.driver.store.facts if each.fact.kind == "task.exited"}
    assert chaos.started <= facts, "every attempt that ran was seen to end"
    for job in chaos.jobs:
        record = played.stored(job)
        assert record.run.completion is not None
        assert load_job(record.doc).priority == record.priority == record.summary.priority
        found = played.receipts(job)
        assert len({each.number for each in found}) == len(found) <= record.run.yields
        assert all(each.over or each.returned_at is not None for each in found)
        yields += len(found)
    assert yields
    assert played.core.world.cluster.consistent()
    played.begin_anew()
    assert not played.core.world.jobs and played.core.world.cluster.holders() == {}
