"""Control measures its own machine, names the tasks of its jobs, and goes on when that fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from corral.control.control_api import ControlApi
from corral.control.metrics.control_metrics import ControlMetrics, MeasureSettings, measure
from corral.control.metrics.node_collection import NodeCollection
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId
from corral.model.metrics.device_families import DeviceMetric
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Samples
from corral.monitor.agent.collector import Collector
from corral.monitor.agent.rounds import Rounds
from corral.service.context import Context
from corral.service.metrics.metrics import Metrics
from tests.control.asked import Asked
from tests.control.harness import House, short
from tests.control.test_metrics_are_told import ANN, of, read
from tests.devices.dcgm_exporter import Exporter


def _process(proc: Path, pid: int, attempt: str) -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "environ").write_text(f"CORRAL_ATTEMPT={attempt}\0")
    (proc / str(pid) / "stat").write_text(f"{pid} (x) S 1 {pid} 0 0 0 0 0 0 0 0 500 0 0 0 0 0 3 0 {pid} 0")
    (proc / str(pid) / "status").write_text("RssAnon: 1024 kB\nRssShmem: 4 kB\n")


async def test_a_running_task_is_told_with_its_names_to_those_who_may_read_jobs(house: House, tmp_path: Path) -> None:
    await house.begin()
    job = await house.submit(short("digits", devices=2))
    await house.until(job, "running")
    (attempt,) = house.engine.running
    proc = tmp_path / "proc"
    _process(proc, 7, attempt)
    _process(proc, 8, "0000000000000.0.worker.0.0")  # another server's
    api = ControlApi(house.control, tmp_path / "unused.sock")
    collector = Collector(parts=("tasks",), proc=str(proc), groups=str(tmp_path))
    collection = NodeCollection(house.control, "local", 5.0, "tasks", collector)
    api.metrics.sources.append(collection.samples)
    await collection.collect()
    metrics = Metrics(Context(house.store, key=b"k" * 32, clock=house.clock, control=Asked(api)))
    found = read(await metrics.page(ANN))
    _, _, role, index, _ = attempt.split(".")
    names = {
        "username": "ada", "job_name": "ada~digits", "role_name": role, "task_index": index, "job_instance_id": job,
        "virtual_cluster": "default",
    }  # fmt: skip
    assert of(found, "task_mem_usage_byte", **names) == 1028 * 1024
    assert of(found, "corral_task_threads", **names) == 3 and of(found, "corral_agent_tasks", state="measured") == 1
    told = read(await metrics.page(None))
    assert of(told, "corral_agent_tasks", state="measured") == 1
    assert not [name for name, labels in told if "task" in name and "username" in dict(labels)]
    assert not {"ada", "ada~digits", job} & {value for _, labels in told for value in dict(labels).values()}
    house.engine.end(attempt, 0)
    await house.until(job, "succeeded")
    assert collection.name_task(attempt, 7) is None


async def test_only_running_attempts_of_this_machine_are_named(house: House) -> None:
    await house.begin()
    job = await house.submit(short("digits"))
    await house.until(job, "running")
    (attempt,) = house.engine.running
    here, elsewhere = (NodeCollection(house.control, name, 5.0, "tasks") for name in ("local", "other"))
    assert here.name_task(attempt, 7) is not None and elsewhere.name_task(attempt, 7) is None
    assert here.name_task(AttemptId(attempt.rpartition(".")[0] + ".7"), 7) is None
    assert here.name_task(AttemptId(attempt.replace(".0.", ".9.", 1)), 7) is None


async def test_a_collector_that_breaks_leaves_no_samples_and_is_called_again() -> None:
    class Broken(Collector):
        def collect(self, name_task: object) -> Samples:
            raise MemoryError

    rounds = Rounds(Broken(parts=()), lambda attempt, pid: None, 5.0)
    await rounds.collect()
    await rounds.collect()
    assert rounds.samples() == Samples() and rounds.pause == 5.0


async def test_the_pause_grows_with_the_cost_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds(Collector(parts=()), lambda attempt, pid: None, 5.0)
    monkeypatch.setattr(rounds, "_collected", lambda: (Samples(), 0.2))
    await rounds.collect()
    assert rounds.pause == pytest.approx(40.0)


async def test_samples_that_are_old_are_no_longer_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds(Collector(parts=("machine",)), lambda attempt, pid: None, 5.0)
    await rounds.collect()
    assert rounds.samples().values
    monkeypatch.setattr("corral.monitor.agent.rounds.time.monotonic", lambda: float("inf"))
    assert rounds.samples() == Samples()


async def test_nothing_is_measured_without_need(house: House, tmp_path: Path) -> None:
    await house.begin()
    api = ControlApi(house.control, tmp_path / "unused.sock")
    settings = MeasureSettings(5.0, "tasks", None, None, "", None)
    assert measure(house.control, api.metrics, [], settings) == []
    assert measure(house.control, api.metrics, ["local"], settings._replace(metrics_seconds=0.0)) == []
    assert not api.metrics.sources
    with pytest.raises(InvalidInput, match="There is no part 'disk' to measure"):
        measure(house.control, api.metrics, ["local"], settings._replace(metrics_parts="tasks,disk"))
    with pytest.raises(InvalidInput, match="The address of an agent is http://HOST:PORT"):
        measure(house.control, api.metrics, [], settings._replace(agents="ftp://gpu-7"))


async def test_a_server_measures_its_own_gpus_by_dcgm_exporter(house: House) -> None:
    await house.begin()
    exporter = Exporter()
    metrics = ControlMetrics(house.control)
    settings = MeasureSettings(5.0, "devices", None, None, "", None, exporter.address)
    running = [asyncio.create_task(each) for each in measure(house.control, metrics, ["local"], settings)]
    try:
        async with house.patience():
            while not any(each.family == DeviceMetric.NVIDIA for each in metrics.measured()):
                await asyncio.sleep(0.01)
        told = {each.labels: each.value for each in metrics.measured() if each.family == DeviceMetric.NVIDIA}
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        exporter.end()
    assert told == {("0",): 98.0, ("1",): 0.0}
    with pytest.raises(InvalidInput, match="written as http://"):
        measure(house.control, metrics, ["local"], settings._replace(metrics_dcgm_exporter="ftp://gpu1"))


async def test_a_server_measures_its_own_machine_by_node_exporter(house: House) -> None:
    await house.begin()
    exporter = Exporter()
    exporter.body = b"node_memory_MemTotal_bytes 4711\n"
    metrics = ControlMetrics(house.control)
    settings = MeasureSettings(5.0, "machine", None, None, "", None, metrics_node_exporter=exporter.address)
    running = [asyncio.create_task(each) for each in measure(house.control, metrics, ["local"], settings)]
    try:
        async with house.patience():
            while not any(each.family == NodeMetric.MEMORY_TOTAL for each in metrics.measured()):
                await asyncio.sleep(0.01)
        told = {each.family: each.value for each in metrics.measured() if each.family in set(NodeMetric)}
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        exporter.end()
    of_kernel = {NodeMetric.DISK_ERRORS, NodeMetric.THROTTLED}  # node exporter has no such series
    assert {name: value for name, value in told.items() if name not in of_kernel} == {NodeMetric.MEMORY_TOTAL: 4711.0}
    for wrong in (
        settings._replace(metrics_node_exporter="ftp://gpu1"),
        settings._replace(metrics_amd_exporter="gpu1"),
    ):
        with pytest.raises(InvalidInput, match="written as http://"):
            measure(house.control, metrics, ["local"], wrong)
