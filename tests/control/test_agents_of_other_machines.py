"""What the agents of other machines measure becomes series, alerts, idle devices and efficiency of this control's jobs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from corral.control.alerts.of_files import keeper_of_files
from corral.control.control_api import ControlApi
from corral.control.idle.keeper import IdleKeeper
from corral.control.initial_configuration import seed
from corral.control.metrics.agent_collection import KEPT_ROUNDS, AgentCollection
from corral.devices.figures.reader import find_reader
from corral.kernel.clock import VirtualClock
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId, JobId
from corral.model.metrics.agent_page import AgentPage
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Samples, Value
from corral.model.metrics.task_families import TaskMetric
from corral.model.series import SeriesQuestion
from corral.monitor.scraping.addresses import Address
from corral.monitor.scraping.agent_client import Target
from corral.monitor.series.store import SeriesStore
from corral.service.usage.efficiency import judged
from corral.spec.configuration_file import load_document
from tests.control.harness import House, PaperEngine, short
from tests.control.test_series_are_kept import asked
from tests.monitor.agent.test_the_agent_is_scraped import TOKEN, Agent

RECORDED: Final = Path(__file__).resolve().parents[1] / "devices/recorded/nvidia-smi-535.xml"
IDLE_GPU: Final = "GPU-5a1b2c3d-0002-4e5f-8a9b-000000000002"
"""The second one of the recording, whose use is 0 %."""
PROGRAM: Final = 'held = bytearray(b"x" * (32 << 20)); print("begun", flush=True); import time; time.sleep(3600)'
ALERTS: Final = """
groups:
  - name: machines
    rules:
      - alert: Idle
        expr: task_gpu_percent < 5
      - alert: Memory
        expr: node_memory_MemTotal_bytes > 0
      - alert: Down
        expr: absent(up{job="corral-node-agent", instance="far/node0"})
"""


@pytest.fixture
async def far(tmp_path: Path) -> AsyncIterator[House]:
    """A control with an engine whose two nodes are other machines."""
    made = House(tmp_path, PaperEngine(nodes=2, devices=2, name="far"))
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def gpus(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of an agent on a machine whose `nvidia-smi` shows the recorded GPUs."""
    if find_reader() is not None:
        pytest.skip("this machine has devices of its own")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "nvidia-smi").write_text(f"#!/bin/sh\nexec cat {RECORDED}\n")
    (tools / "nvidia-smi").chmod(0o755)
    yield dict(os.environ, PATH=f"{tools}{os.pathsep}{os.environ['PATH']}")


class Process:
    """A process of a task, as an engine on the other machine starts it."""

    def __init__(self, attempt: str, **more: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=dict(os.environ, CORRAL_ATTEMPT=attempt, **more),
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None and self._process.stdout.readline() == b"begun\n"

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that an agent or a task of this process brings about."""
    async with House.patience():
        while not holds():
            await asyncio.sleep(0.05)


def of_job(samples: Samples, family: str, job: str) -> list[Value]:
    return [each for each in samples.values if each.family == family and job in each.labels]


async def test_a_task_of_another_machine_has_series_alerts_efficiency_and_idle_devices(
    far: House, gpus: dict[str, str], tmp_path: Path
) -> None:
    rule = "kind: Queue\nname: lab\nidle: {for: 2h, grace: 1h, action: stop}\n"
    await seed(far.store, load_document(rule), file="site.yaml", clock=far.clock)
    control = await far.begin()
    api = ControlApi(control, tmp_path / "unused.sock", series=SeriesStore(tmp_path / "series.db"))
    job = await far.submit(short("trainer", devices=1, queue="lab"))
    await far.until(job, "running")
    (attempt,) = far.engine.running
    node = await placed(far, job)
    # The task says that it is somebody else's; the server knows better.
    process = Process(attempt, PAI_USER_NAME="eve", PAI_JOB_NAME="eve~loot", NVIDIA_VISIBLE_DEVICES=IDLE_GPU)
    agent = Agent(tmp_path, "--node", node.partition("/")[2], env=gpus)
    seconds, ticks = 0.1, [0.0]
    try:
        agents = AgentCollection(control, agent.url, tmp_path / "token", seconds=seconds, steady=lambda: ticks[0])
        api.metrics.agents = agents
        following = asyncio.create_task(agents.run(control.ready))
        use = TaskMetric.DEVICE
        await until(lambda: bool(of_job(api.metrics.everywhere(), use, job)))
        (value,) = of_job(api.metrics.everywhere(), use, job)
        assert value.labels[:2] == ("ada", "ada~trainer") and value.labels[4:6] == (job, "lab") and value.value == 0.0
        assert not of_job(api.metrics.samples(), use, job)  # a Prometheus reads the agent itself
        begun = far.clock.now()
        await series_of(api, job, node, begun)
        await alerts_of(far, api, tmp_path, node)
        await idle_devices_of(far, api, job)
        held = (await far.store.held_between(0.0, far.clock.now(), [job], now=far.clock.now()))[0]
        report = await judged(held, api.read_series, far.clock.now())
        (role,) = report.roles
        assert role.device_percent == 0.0 and role.most.devices == 0 and (role.most.memory_bytes or 0) > 2**25
    finally:
        process.end()
        ended = agent.end()
    assert ended == 0
    await until(lambda: agents.scraper.silent == 1)
    assert list(agents.scraper.troubles().values()) != [""], "the silent one says why"
    assert agents.counts().values == (
        Value("corral_agents", ("answering",), 0.0),
        Value("corral_agents", ("silent",), 1.0),
    )
    ticks[0] = 2 * seconds
    assert api.metrics.of_machines(1.6) == {} and list(api.metrics.of_machines(KEPT_ROUNDS)) == [node]
    ticks[0] = (KEPT_ROUNDS + 1) * seconds
    assert not of_job(api.metrics.everywhere(), use, job)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def placed(house: House, job: JobId) -> str:
    (task,) = house.control.world.jobs[job].tasks.values()
    assert task.placement is not None
    return task.placement.node


async def series_of(api: ControlApi, job: JobId, node: str, begun: float) -> None:
    """The series of a job are kept, and those of its machine with the node."""
    assert api._keeper is not None
    await api._keeper.keep(store_them=True)
    found = {each.family: each for each in await asked(api, SeriesQuestion(begun - 60, begun + 300, 15, job=job))}
    assert {"task_gpu_percent", "task_mem_usage_byte", "corral_task_processes"} <= set(found)
    assert found["task_gpu_percent"].labels["username"] == "ada" and "node" not in found["task_gpu_percent"].labels
    assert {value for value in found["task_gpu_percent"].mean if value is not None} == {0.0}
    machine = SeriesQuestion(begun - 60, begun + 300, 15, ("node_cpu_seconds_total", "corral_device_use_ratio"))
    of_machine = await asked(api, machine)
    assert {each.labels["node"] for each in of_machine} == {node}
    assert {each.labels["cpu"] for each in of_machine if each.family == "node_cpu_seconds_total"} == {"all"}
    assert sorted(max(v for v in each.mean if v is not None) for each in of_machine if "device" in each.family) == [
        0.0,
        pytest.approx(0.98, abs=0.001),
    ]


async def alerts_of(house: House, api: ControlApi, folder: Path, node: str) -> None:
    """Rules read the series of the other machine, whose `instance` is the node."""
    (folder / "rules.yml").write_text(ALERTS.replace("far/node0", node))
    keeper = keeper_of_files(folder / "rules.yml", None, house.control, api.metrics, url="http://server:8470")
    await keeper.evaluate()
    alerts = await house.store.alerts()
    assert {each.rule for each in alerts} == {"Idle", "Memory"}
    (idle,) = (each for each in alerts if each.rule == "Idle")
    assert idle.labels["job_name"] == "ada~trainer" and idle.labels["instance"] == node
    assert {each.labels["instance"] for each in alerts if each.rule == "Memory"} == {node}


async def idle_devices_of(house: House, api: ControlApi, job: JobId) -> None:
    """The rule about idle devices finds the job, and warns its owner."""
    clock = VirtualClock(house.clock.now())
    keeper = IdleKeeper(house.control, api.metrics.everywhere, clock)
    await keeper.look()
    clock.advance(2 * 3600 + 60)
    await keeper.look()
    assert "job.idle-warned" in {each.kind for each in await house.store.events_of(job)}


class Direct:
    """A collection that is given answers, without a network."""

    def __init__(self, house: House, **more: object) -> None:
        self.ticks = 0.0
        self.collection = AgentCollection(
            house.control,
            "http://{node}:9102",
            seconds=1.0,
            steady=lambda: self.ticks,
            **more,  # type: ignore[arg-type]
        )

    def take(self, node: str, *values: Value, host: str = "a", of: str = "", engine: str = "") -> None:
        address = Address(False, host, 9102, node=of, engine=engine)
        self.collection.take(Target(address, host), AgentPage(node, 0.0, values), 0.0)


def of_task(attempt: AttemptId, *, user: str = "eve", index: str = "") -> Value:
    job, _, role, number, _ = attempt.split(".")
    return Value(TaskMetric.MEMORY, (user, "x", role, index or number, job, "q"), 1.0)


async def test_a_node_tells_only_of_tasks_that_control_has_there(far: House) -> None:
    await far.begin()
    job = await far.submit(short("trainer", devices=1))
    await far.until(job, "running")
    (attempt,) = far.engine.running
    here = await placed(far, job)
    there = next(name for name in far.control.machines.nodes if name != here)
    direct = Direct(far)
    wrong = [of_task(attempt, index=index) for index in ("7", "x", "-1", "\u0663", "9" * 30)]
    clock = Value(NodeMetric.CLOCK, (), 0.5)
    for node in (here, there):
        direct.take(node.partition("/")[2], of_task(attempt), *wrong, clock, host=node)
    own = Value(TaskMetric.MEMORY, ("ada", "ada~trainer", "worker", "0", job, "default"), 1.0)
    assert direct.collection.machines() == {here: Samples((own, clock)), there: Samples((clock,))}
    far.engine.end(attempt, 0)
    await far.until(job, "succeeded")
    direct.take(here.partition("/")[2], of_task(attempt), host=here)
    assert direct.collection.machines()[here] == Samples()


async def test_an_agent_of_no_node_and_a_second_one_of_a_node_are_refused(far: House) -> None:
    await far.begin()
    direct = Direct(far)
    with pytest.raises(InvalidInput, match="calls itself 'elsewhere'; no engine has a node of that name"):
        direct.take("elsewhere")
    with pytest.raises(InvalidInput, match="no engine has a node"):
        Direct(far, here=("far",)).take("node0")
    direct.take("node0", host="a")
    with pytest.raises(InvalidInput, match="It tells of far/node0, of which http://a:9102 tells already"):
        direct.take("node0", host="b")
    direct.ticks = KEPT_ROUNDS
    direct.take("node0", host="b")
    direct.take("something.else", host="c", of="node1")  # an address made from a node's name is that node's
    assert set(direct.collection.machines()) == {"far/node0", "far/node1"}


async def test_an_agent_that_an_engine_runs_tells_of_that_engines_node(far: House) -> None:
    far.other_engines = (PaperEngine(nodes=1, name="yarn"),)
    await far.begin()
    async with far.patience():
        while len(far.control.machines.nodes) < 3:
            await asyncio.sleep(0.02)
    direct = Direct(far)
    direct.take("node0", of="node0", engine="yarn")
    assert set(direct.collection.machines()) == {"yarn/node0"}, "another engine has a node of the same name"
    with pytest.raises(InvalidInput, match="no engine has a node"):
        direct.take("node1", of="node1", engine="yarn")


async def test_every_node_of_another_machine_is_asked_where_the_address_names_it(far: House) -> None:
    far.other_engines = (PaperEngine(nodes=1, name="local"),)
    await far.begin()
    async with far.patience():
        while len(far.control.machines.nodes) < 3:
            await asyncio.sleep(0.02)
    direct = Direct(far, here=("local",))
    found = {(each.host, each.node) for each in direct.collection.scraper._addresses()}
    assert found == {("node0", "node0"), ("node1", "node1")}
    assert TOKEN not in str(found)
