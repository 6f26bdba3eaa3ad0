"""Check scripts of agents on other machines, and what is measured of the server's own machine, are signs of nodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import httpx2
import pytest

from corral.control.health import keeper as keeper_module
from corral.control.health.beside import HealthSettings, watch_beside
from corral.control.health.keeper import HealthKeeper
from corral.control.metrics.agent_collection import AgentCollection
from corral.control.metrics.control_metrics import ControlMetrics, MeasureSettings, measure
from corral.control.metrics.node_collection import NodeCollection
from corral.model.metrics.agent_page import read_page
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Value
from corral.monitor.agent.collector import Collector
from corral.monitor.health.figure_signs import Figures
from corral.settings import Settings
from corral.storage.log_files import LogStore
from corral.storage.log_sources import LogSources
from tests.control.harness import House, PaperEngine, short
from tests.monitor.agent.test_the_agent_is_scraped import TOKEN, Agent
from tests.monitor.health.test_check_scripts import script
from tests.monitor.health.test_signs_in_figures import Tree
from tests.waiting import pause


class Site:
    """A control whose nodes are watched, with one engine."""

    def __init__(self, folder: Path, engine: str) -> None:
        folder.mkdir()
        self.house = House(folder, PaperEngine(nodes=2, name=engine))
        self.logs = LogSources(LogStore(folder / "logs"))
        self.tasks: list[asyncio.Task[None]] = []
        self.keeper: HealthKeeper

    async def begin(self) -> None:
        await self.house.open()
        control = await self.house.begin()
        settings = Settings(administrator="root", health="cordon", health_validation="none")
        keeper, loops = watch_beside(control, self.logs, HealthSettings.of(settings))
        assert keeper is not None
        self.keeper = keeper
        self.tasks += [asyncio.create_task(loop) for loop in loops]

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.house.close()

    async def history(self, node: str, enough: Callable[[list[tuple[str, str]]], bool]) -> list[tuple[str, str]]:
        """What is written of a node, once it is enough."""
        async with self.house.patience():
            while True:
                items = (await self.house.store.health_history(node)).items
                found = [(each.what, each.reason) for each in items]
                if enough(found):
                    return found
                await asyncio.sleep(0.05)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_module, "FIGURE_SECONDS", 0.0)
    monkeypatch.setattr(keeper_module, "LOOK_SECONDS", 0.05)


@pytest.fixture
async def site(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    made = Site(tmp_path / "site", request.param)
    yield made
    await made.end()


@pytest.mark.parametrize("site", ["kubernetes", "yarn"], indirect=True)
async def test_a_script_of_an_agent_that_finds_a_problem_is_a_sign_of_its_node(site: Site, tmp_path: Path) -> None:
    await site.begin()
    engine = site.house.engine.name
    checks = tmp_path / "checks"
    checks.mkdir()
    script(checks, "gpu.sh", 'echo "a fan of $CORRAL_NODE stands"; exit 1')
    script(checks, "fine.sh", "exit 0")
    script(checks, "odd.sh", "exit 7")
    agent = Agent(tmp_path, "--node", "node1", "--checks", str(checks), "--check-seconds", "1")
    agents = AgentCollection(site.house.control, agent.url, tmp_path / "token", seconds=0.2)
    site.keeper.figures.append(agents.figures)
    following = asyncio.create_task(agents.run(site.house.control.ready))
    try:
        seen = ("check-failed", "check gpu.sh: a fan of node1 stands")
        found = await site.history(f"{engine}/node1", lambda found: seen in found)
        assert {what for what, _ in found} <= {"check-failed", "moved"}, found
        assert [each.node for each in await site.house.store.node_health()] == [f"{engine}/node1"]
        page = agent.page().text
        assert 'corral_agent_check_failed{check="gpu.sh"} 1' in page
        assert 'corral_agent_check_failed{check="fine.sh"} 0' in page and "odd.sh" not in page
        script(checks, "gpu.sh", "exit 0")
        async with site.house.patience():
            while 'corral_agent_check_failed{check="gpu.sh"} 0' not in agent.page().text:
                await asyncio.sleep(0.1)
        checks.chmod(0o777)  # others could change them now: nothing is run or told any more
        async with site.house.patience():
            while "corral_agent_check_failed{" in agent.page().text:
                await asyncio.sleep(0.1)
        await site.house.until(await site.house.submit(short("goes-on", end_with=0)), "succeeded")
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        assert agent.end() == 0


def test_an_agent_tells_its_checks_to_its_token_alone(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    script(tmp_path / "checks", "slow.sh", "sleep 1000")
    script(tmp_path / "checks", "bad.sh", "echo bad; exit 1")
    options = ("--checks", str(tmp_path / "checks"), "--check-seconds", "1", "--check-limit-seconds", "0.5")
    agent = Agent(tmp_path, *options)
    try:
        wanted = [("bad.sh", 1, "bad"), ("slow.sh", None, "it took longer than 0.5 s")]
        found: list[tuple[str, int | None, str]] = []
        begun = time.monotonic()
        while found != wanted:  # on a slow machine the bad one takes too long in some rounds
            assert time.monotonic() < begun + 200, found
            answer = httpx2.get(f"{agent.url}/samples", headers={"Authorization": f"Bearer {TOKEN}"})
            checks = read_page(answer.content).checks
            found = [(each.script, each.code, each.message) for each in checks]
            time.sleep(pause(begun))
        assert httpx2.get(f"{agent.url}/samples").status_code == 401
    finally:
        assert agent.end() == 0


@pytest.mark.parametrize("site", ["local"], indirect=True)
async def test_links_disks_and_hot_processors_of_the_servers_own_machine_are_signs(site: Site, tmp_path: Path) -> None:
    await site.begin()
    tree, downs = Tree(tmp_path / "kernel"), [4.0]
    collector = Collector(
        parts=("machine",),
        machine=lambda: [*tree.values(), Value(NodeMetric.LINK_DOWN, ("eth0",), downs[0])],
    )
    collection = NodeCollection(site.house.control, "local", 5.0, "machine", collector)
    await collection.collect()
    first, looked = collection.figures(), asyncio.Event()
    assert set(first) == {"local/node0", "local/node1"} and all(each.ahead is None for each in first.values())

    def figures() -> Mapping[str, Figures]:
        looked.set()
        return collection.figures()

    site.keeper.figures.append(figures)
    async with site.house.patience():
        await looked.wait()
    downs[0] += 3
    tree.write("ext4/sda1/errors_count", "3\n")
    tree.heat(0, 120 + 75_000)
    await collection.collect()
    wanted = {
        ("link-flaps", "the link of eth0 went down 3 times within an hour"),
        ("disk-errors", "the kernel counted 3 errors of the file system on sda1 within an hour"),
        ("throttled", "heat held the clocks of processor 0 down for 75 s within ten minutes"),
    }
    found = await site.history("local/node0", lambda found: wanted <= set(found))
    assert {what for what, _ in found} - {"moved"} == {"link-flaps", "disk-errors", "throttled"}
    assert {each.node for each in await site.house.store.node_health()} == {"local/node0", "local/node1"}


@pytest.mark.parametrize("site", ["local"], indirect=True)
async def test_a_server_that_measures_its_own_machine_looks_for_signs_there(site: Site) -> None:
    await site.begin()
    loops = measure(
        site.house.control, ControlMetrics(site.house.control), ["local"],
        MeasureSettings(5.0, "machine", None, None, "", None), site.keeper,
    )  # fmt: skip
    assert len(site.keeper.figures) == 1
    (measured,) = site.keeper.figures
    site.tasks += [asyncio.create_task(loop) for loop in loops]
    async with site.house.patience():
        while not measured():
            await asyncio.sleep(0.02)
    assert set(measured()) == {"local/node0", "local/node1"}
