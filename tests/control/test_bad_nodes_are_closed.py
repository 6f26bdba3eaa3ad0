"""Control closes a node with signs of trouble, validates it on the closed node, and returns it; across restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.control.health import keeper as keeper_module
from corral.control.health.beside import HealthSettings, watch_beside
from corral.control.health.checks import Checks
from corral.control.health.keeper import HealthKeeper
from corral.control.loop import Control
from corral.control.metrics.control_metrics import ControlMetrics, MeasureSettings, measure
from corral.kernel.errors import Conflict, NotFound
from corral.model.exits import NODE_LOST
from corral.model.health.records import HEALTH
from corral.model.health.signs import Sign, SignKind
from corral.model.health.states import Cause, HealthState
from corral.model.metrics.agent_page import AgentPage
from corral.model.metrics.samples import Samples
from corral.model.store_writes import Intent, IntentKind
from corral.monitor.health.check_scripts import Checked
from corral.monitor.health.figure_signs import Figures, FigureSigns
from corral.monitor.health.hangs import HangingTask
from corral.monitor.scraping.addresses import Address
from corral.monitor.scraping.agent_client import Target
from corral.settings import Settings
from corral.storage.log_files import LogStore
from corral.storage.log_sources import LogSources
from tests.control.harness import House, PaperEngine, short

NODE = "local/node0"


class Watched:
    """A house whose controls are watched."""

    def __init__(self, folder: Path) -> None:
        self.house = House(folder, PaperEngine(nodes=4))
        self.house.engine.started_at = self.house.clock.now()
        self.logs = LogSources(LogStore(folder / "logs"))
        self.tasks: list[asyncio.Task[None]] = []
        self.keeper: HealthKeeper

    async def begin(self, validation: str = "built-in") -> None:
        await self.house.begin(lambda control: self._beside(control, validation))

    def _beside(self, control: Control, validation: str = "built-in") -> None:
        settings = Settings(administrator="root", health_validation=validation)
        keeper, loops = watch_beside(control, self.logs, HealthSettings.of(settings))
        assert keeper is not None
        self.keeper = keeper
        self.tasks = [asyncio.create_task(loop) for loop in loops]

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.house.abandon()

    async def until(self, state: HealthState, node: str = NODE) -> None:
        async with self.house.patience():
            while True:
                known = {each.node: each.state for each in await self.house.store.node_health()}
                if known.get(node, HealthState.HEALTHY) is state:
                    return
                await self.house.store.wakeup.wait(0.05)

    def suspect(self, *kinds: SignKind) -> None:
        now = self.house.clock.now()
        self.keeper.add(Sign(kind, NODE, now, "it was seen", source=str(at)) for at, kind in enumerate(kinds))

    async def validation(self) -> str:
        """The validation job that runs; waits for it."""
        async with self.house.patience():
            while True:
                for attempt in self.house.engine.running:
                    name = self.house.control.world.jobs[attempt.partition(".")[0]].name  # type: ignore[index]
                    if name.startswith("validate-"):
                        return attempt
                await asyncio.sleep(0.05)


@pytest.fixture
async def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    monkeypatch.setattr(keeper_module, "LOOK_SECONDS", 0.02)
    made = Watched(tmp_path)
    await made.house.open()
    yield made
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks, return_exceptions=True)
    await made.house.close()


async def test_a_bad_node_is_closed_validated_and_returned(watched: Watched) -> None:
    await watched.begin()
    watched.suspect(SignKind.NODE_EXIT, SignKind.NODE_EXIT, SignKind.NODE_EXIT)
    attempt = await watched.validation()
    cordon = (await watched.house.store.cordons())[NODE]
    assert (cordon.by, cordon.validating) == (HEALTH, True)
    job = await watched.house.submit(short("whole", replicas=4, devices=4))
    record = await watched.house.explained(job)
    assert record.summary.waiting is not None, "the node takes its validation alone"
    watched.house.engine.end(attempt, 0)  # type: ignore[arg-type]
    await watched.until(HealthState.HEALTHY)
    await watched.house.until(job, "running")
    history = (await watched.house.store.health_history(NODE)).items
    assert [each.after for each in reversed(history) if each.what == "moved"] == ["cordoned", "validating", "healthy"]
    assert await watched.house.store.cordons() == {}


async def test_a_failed_validation_keeps_the_cordon_over_a_restart(watched: Watched) -> None:
    await watched.begin()
    watched.suspect(SignKind.NODE_EXIT, SignKind.NODE_EXIT, SignKind.NODE_EXIT)
    attempt = await watched.validation()
    watched.house.engine.end(attempt, 1)  # type: ignore[arg-type]
    await watched.until(HealthState.CORDONED)
    await watched.end()
    await watched.begin()
    (known,) = await watched.house.store.node_health()
    assert known.state is HealthState.CORDONED and "ended with 1" in known.why
    async with watched.house.patience():
        while NODE not in watched.house.control.machines.cordons or watched.keeper._watch is None:
            await asyncio.sleep(0.02)
    assert (await watched.keeper.act(NODE, Cause.REPAIR, "root", "new board")).state == "repairing"
    with pytest.raises(Conflict, match="is repairing"):
        await watched.keeper.act(NODE, Cause.PASSED, "root", "")
    with pytest.raises(NotFound):
        await watched.keeper.act("local/none", Cause.REPAIR, "root", "")
    assert (await watched.keeper.act(NODE, Cause.CLEARED, "root", "")).state == "healthy"
    async with watched.house.patience():
        while watched.house.control.machines.cordons:
            await asyncio.sleep(0.02)


async def test_a_node_that_reboots_during_its_validation_stays_closed_and_is_validated_again(watched: Watched) -> None:
    await watched.begin()
    watched.suspect(SignKind.NODE_EXIT, SignKind.NODE_EXIT, SignKind.NODE_EXIT)
    attempt = await watched.validation()
    watched.house.engine.end(attempt, NODE_LOST)  # type: ignore[arg-type]
    async with watched.house.patience():
        while not (again := [each for each in watched.house.engine.running if each != attempt]):
            await asyncio.sleep(0.02)
    (known,) = await watched.house.store.node_health()
    assert known.state is HealthState.VALIDATING and (await watched.house.store.cordons())[NODE].by == HEALTH
    assert watched.house.engine.running[again[0]].node == NODE
    watched.house.engine.end(again[0], 0)
    await watched.until(HealthState.HEALTHY)


async def test_a_suspected_node_is_taken_last(watched: Watched) -> None:
    await watched.begin(validation="none")
    watched.suspect(SignKind.DEVICE)
    await watched.until(HealthState.SUSPECTED)
    async with watched.house.patience():
        while not watched.house.control.machines.nodes[NODE].taints:
            await asyncio.sleep(0.02)
    job = await watched.house.submit(short("three", replicas=3, devices=4))
    await watched.house.until(job, "running")
    assert NODE not in {each.node for each in await watched.house.store.job_members(job)}
    stored = await watched.house.store.node(NODE)
    assert stored is not None and not stored.node.taints


async def test_a_benchmark_suite_validates_a_node(watched: Watched) -> None:
    await watched.begin(validation="suite:quick")
    watched.suspect(SignKind.NODE_EXIT, SignKind.NODE_EXIT, SignKind.NODE_EXIT)
    attempt = await watched.validation()
    command = watched.house.engine.running[attempt].command  # type: ignore[index]
    assert any("cpu-stream" in word for word in command) and command[-1].startswith("suite ")
    watched.house.engine.end(attempt, 0)  # type: ignore[arg-type]
    await watched.until(HealthState.HEALTHY)


async def test_a_validation_whose_suite_is_missing_fails_and_says_so(watched: Watched) -> None:
    await watched.begin(validation="suite:nowhere")
    watched.suspect(SignKind.NODE_EXIT, SignKind.NODE_EXIT, SignKind.NODE_EXIT)
    async with watched.house.patience():
        while not any("nowhere" in each.reason for each in (await watched.house.store.health_history(NODE)).items):
            await asyncio.sleep(0.02)
    await watched.until(HealthState.CORDONED)


async def test_a_watch_that_fails_stops_no_job(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    await watched.begin()

    def broken(*_: object) -> None:
        raise RuntimeError("the watch is broken")

    monkeypatch.setattr("corral.monitor.health.watch.Watch.stored", broken)
    monkeypatch.setattr("corral.monitor.health.watch.Watch.machines", broken)
    job = await watched.house.submit(short("goes-on", end_with=0))
    await watched.house.until(job, "succeeded")


async def test_an_administrator_who_removes_the_cordon_ends_it(watched: Watched) -> None:
    await watched.begin(validation="none")
    watched.suspect(SignKind.XID, SignKind.ECC)
    await watched.until(HealthState.CORDONED)
    async with watched.house.patience():
        while not any(each.closed for each in await watched.house.store.node_health()):
            await asyncio.sleep(0.02)
    await watched.house.store.remove_cordon(NODE, actor="root", at=watched.house.clock.now())
    await watched.until(HealthState.HEALTHY)


async def test_checks_that_break_stop_no_job(watched: Watched, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def broken(*_: object) -> list[Checked]:
        raise RuntimeError("nothing can be started")

    monkeypatch.setattr("corral.monitor.health.check_rounds.run_all", broken)
    await watched.begin()
    checks = Checks(watched.house.control, watched.keeper, watched.house.clock, tmp_path, every=0.01, limit=1.0)
    watched.tasks.append(asyncio.create_task(checks.run()))
    job = await watched.house.submit(short("goes-on", end_with=0))
    await watched.house.until(job, "succeeded")
    assert not watched.tasks[-1].done()


async def test_what_an_agent_measured_adds_to_the_score_of_its_node(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    await watched.begin()
    settings = MeasureSettings(0.0, "", None, None, "http://{node}.invalid", None)
    metrics = ControlMetrics(watched.house.control)
    for loop in measure(watched.house.control, metrics, [], settings, watched.keeper):
        loop.close()  # the test gives the answers
    assert metrics.agents is not None
    for number in range(4):
        address = Address(False, f"node{number}", 9102, node=f"node{number}")
        page = AgentPage(address.host, 0.0, ())
        metrics.agents.take(Target(address, address.host), page, 90.0 if address.host == "node0" else 0.0)
    monkeypatch.setattr(keeper_module, "FIGURE_SECONDS", 0.0)
    async with watched.house.patience():
        while not (found := (await watched.house.store.health_history(NODE)).items):
            await asyncio.sleep(0.05)
    assert [(each.what, each.reason) for each in found] == [("clock-skew", "its clock is 90.0 s ahead of the server's")]
    assert [each.node for each in await watched.house.store.node_health()] == [NODE]


async def test_a_task_that_stops_while_its_peers_go_on_is_told_to_who_keeps_its_evidence(watched: Watched) -> None:
    await watched.begin()
    job = await watched.house.submit(short("gang", replicas=3, devices=4))
    await watched.house.until(job, "running")
    told: list[HangingTask] = []
    watched.keeper.on_hanging = told.extend
    steps = {0: range(100), 1: range(5), 2: range(100)}
    said = [(10.0 * step, index, float(step)) for index, those in steps.items() for step in those]
    data: list[dict[str, Any]] = [
        {"jobAttempt": 0, "role": "worker", "index": index, "report": {"at": at, "step": step}}
        for at, index, step in sorted(said)
    ]
    heard = [Intent(0, job, IntentKind.WORK_REPORTED, "runtime", 0.0, each) for each in data]
    async with watched.house.patience():
        while not told:
            watched.keeper.heard(heard)  # until what is stored has been read, nothing is heard
            await asyncio.sleep(0.05)
    assert [(each.job, str(each.key)) for each in told] == [(job, "worker-1")]
    async with watched.house.patience():
        while not (found := (await watched.house.store.health_history(told[0].node)).items):
            await asyncio.sleep(0.05)
    assert [each.what for each in found] == ["hang"]


async def test_figures_that_cannot_be_looked_at_keep_no_other_sign_from_being_seen(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_module, "FIGURE_SECONDS", 0.0)
    await watched.begin()

    class Broken(FigureSigns):
        def look(self, nodes: object, now: float) -> Iterator[Sign]:
            raise MemoryError

    watched.keeper._figure_signs = Broken()
    watched.keeper.figures = [lambda: {NODE: Figures(Samples())}]
    watched.suspect(SignKind.NODE_EXIT, SignKind.NODE_EXIT)
    await watched.until(HealthState.SUSPECTED)
