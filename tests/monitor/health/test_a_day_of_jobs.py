"""A day of jobs on 32 nodes: the slow and the failing node are found, no good node is closed, and no job is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from corral.control.core.core import Batch, Core
from corral.control.core.driver import Work
from corral.control.core.inputs import Input
from corral.control.core.intents import IntentsRead
from corral.control.core.machines import MachinesSeen
from corral.control.core.world import Job
from corral.kernel.draw import draw
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.model.exits import START_FAILED_TRANSIENTLY, classify
from corral.model.health.ledger import HealthTerms
from corral.model.health.records import HEALTH
from corral.model.health.signs import NODE
from corral.model.health.states import Cause, HealthState
from corral.model.store_writes import IntentKind
from corral.monitor.health.validation import validation_job
from corral.monitor.health.watch import Watch, empty_nodes
from tests.control.core.virtual import BEGIN, Played, new_job

HOUR: Final = 3600.0
FAILING, SLOW = "local/node5", "local/node20"
_LOOK: Final = 60.0
_REPORT: Final = 200.0
_SECONDS: Final = 2 * HOUR
_MISSING: Final = classify(START_FAILED_TRANSIENTLY, "The device file /dev/nvidia3 is missing.")


class Day:
    """32 nodes of four devices, a watch beside their core, and jobs whose tasks meet what is wrong with the nodes."""

    def __init__(self, nodes: int = 32, **terms: Any) -> None:
        self.played = Played(nodes, 4)
        self.watch = Watch(HealthTerms(**terms))
        self.bad = {FAILING, SLOW}
        """The nodes that have their fault still."""
        self.gangs: dict[JobId, dict[str, float]] = {}
        """By job of several tasks, when each task began to run."""
        self.validations = 0
        driver = self.played.driver
        driver.stepped = self._stepped
        driver.works = self._work

    def _work(self, job: Job, attempt: AttemptId) -> Work:
        node = self._node_of(job.id, parse_attempt_id(attempt).task)
        if node == FAILING and node in self.bad:
            return Work(1.0, refusal=_MISSING)
        slow = node == SLOW and node in self.bad
        if job.name.startswith("validate"):
            return Work(600.0, code=1 if slow else 0)
        return Work(_SECONDS if job.name.startswith("gang") else 1800.0)

    def _node_of(self, job: JobId, key: TaskKey) -> str:
        found = self.played.core.world.jobs.get(job)
        task = found.tasks.get(key) if found is not None else None
        return task.placement.node if task is not None and task.placement is not None else ""

    def _stepped(self, core: Core, inputs: Sequence[Input], now: float) -> Batch:
        batch = Core.step(core, inputs, now)
        for each in inputs:
            if isinstance(each, IntentsRead):
                self.watch.heard(each.intents, self._node_of, now)
        if batch.writes is not None:
            self.watch.stored(batch.writes, now)
        return batch

    def submit(self, hours: int) -> list[JobId]:
        """A gang of four whole nodes every 18 minutes, and a job of one to four devices every four."""
        jobs = []
        for number in range(int(hours * HOUR // 1100)):
            jobs.append(self.played.submit(f"gang{number}", number * 1100.0, replicas=4, devices=4))
        for number in range(int(hours * HOUR // 240)):
            devices = 1 + int(4 * draw(7, number))
            jobs.append(self.played.submit(f"one{number}", number * 240.0, devices=devices))
        return jobs

    def run(self, until: float) -> None:
        """Go on, looking at the nodes every minute; running gangs report their steps."""
        driver = self.played.driver
        while driver.now < BEGIN + until:
            driver.run(driver.now + _LOOK)
            if (driver.now - BEGIN) % _REPORT < _LOOK:
                self._report()
            self.look()

    def _report(self) -> None:
        now = self.played.driver.now
        for job in list(self.played.core.world.jobs.values()):
            if not job.name.startswith("gang"):
                continue
            for key, task in job.tasks.items():
                if task.started_at is None or task.placement is None:
                    continue
                pace = 1.5 if task.placement.node == SLOW and SLOW in self.bad else 2.0
                report = {"at": now, "step": (now - task.started_at) * pace}
                data: dict[str, Any] = {
                    "jobAttempt": job.run.attempt,
                    "role": key.role,
                    "index": key.index,
                    "report": report,
                }
                self.played.driver.request(job.id, IntentKind.WORK_REPORTED, **data)
        self.played.settle()

    def look(self) -> None:
        """What control's keeper does at each look, on this core."""
        core, now, ledger = self.played.core, self.played.driver.now, self.watch.ledger
        self.watch.machines(core.machines.nodes, lambda name: core.machines.lost(name, now), now)
        self.watch.hanging(self._node_of, lambda job, key: NODE, now)
        cordons = dict(core.machines.cordons)
        ledger.review(now, cordons, empty_nodes(ledger.closed, core.world.held_nodes))
        for health in ledger.closed:
            if health.state is HealthState.VALIDATING:
                self._validate(health.node, health.job)
        for health in ledger.known.values():
            if health.state is not HealthState.VALIDATING and JobId(health.job) in core.world.jobs:
                self.played.driver.request(JobId(health.job), IntentKind.STOP, HEALTH)
        new, gone = self.watch.cordons_wanted(cordons)
        if new or gone:
            after = {name: each for name, each in cordons.items() if name not in gone}
            self.played.close(*(after | {each.node: each for each in new}).values())
        seen = MachinesSeen(self.watch.overlaid(self.played.machines))
        if seen.inventory != core.machines.inventory("local"):
            self.played.driver.at(now, seen)
            self.played.settle()

    def _validate(self, node: str, job: str) -> None:
        now, ledger = self.played.driver.now, self.watch.ledger
        if not job:
            self.validations += 1
            document = validation_job(self.played.core.machines.nodes[node], f"validate{self.validations}")
            identity = JobId(f"1v{self.validations:024d}")
            self.played.driver.at(now, new_job(identity, document, now))
            ledger.note_job(node, identity)
            return
        if (record := self.played.stored(JobId(job))).run.completion is not None:
            passed = record.run.completion.succeeded
            ledger.move(node, Cause.PASSED if passed else Cause.FAILED, HEALTH, "the validation ended", now)


def ever_closed(day: Day) -> set[str]:
    return {each.node for each in day.watch.ledger.entries if each.after == "cordoned"}


def test_the_slow_and_the_failing_node_are_found_and_no_good_one_is_closed() -> None:
    day = Day()
    jobs = day.submit(24)
    day.run(16 * HOUR)
    ledger = day.watch.ledger
    assert ever_closed(day) == {FAILING, SLOW}
    assert not [each for each in ledger.entries if each.what == "hang"]
    assert {each.node for each in ledger.closed} == {FAILING, SLOW}, "both validations find them broken"
    assert ledger.of(SLOW).state is HealthState.CORDONED
    day.bad.clear()
    now = day.played.driver.now
    for node in (FAILING, SLOW):
        ledger.move(node, Cause.REPAIR, "root", "the board was changed", now)
        ledger.move(node, Cause.VALIDATE, "root", "", now)
    day.run(17 * HOUR)
    assert ledger.closed == []
    day.run(28 * HOUR)
    assert ever_closed(day) == {FAILING, SLOW}
    assert not day.played.core.machines.cordons
    ended = [day.played.stored(job).run.completion for job in jobs]
    assert all(each is not None and each.succeeded for each in ended), "no job is lost"
    slow = [each for each in ledger.entries if each.what == "slow-task"]
    assert {each.node for each in slow} == {SLOW}
    assert slow[0].reason.endswith("made 1.5 steps a second, and its peers in the same gang 2")


def test_a_suspected_node_is_taken_last() -> None:
    day = Day(nodes=4)
    day.bad.clear()
    ledger = day.watch.ledger
    from corral.model.health.signs import Sign, SignKind

    ledger.add(Sign(SignKind.DEVICE, "local/node0", BEGIN, "device 1 is unhealthy", device=1))
    day.look()
    assert ledger.of("local/node0").state is HealthState.SUSPECTED
    jobs = [day.played.submit(f"gang{at}", devices=4) for at in range(4)]
    day.run(_LOOK)
    nodes = [day.played.nodes_of(job)[0] for job in jobs]
    assert nodes[-1] == "local/node0" and len(set(nodes)) == 4
