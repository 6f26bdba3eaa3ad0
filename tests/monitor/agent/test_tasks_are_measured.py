"""Real process trees are measured, and a made-up machine with ten thousand tasks within bounds."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.devices.figures.device_figures import DeviceFigures
from corral.devices.figures.nvml import NvmlReader
from corral.kernel.ids import AttemptId
from corral.model.metrics.samples import Samples
from corral.model.metrics.task_families import TaskMetric
from corral.monitor.agent.collector import Collector
from corral.monitor.agent.task_figures import MOST_TASKS, TaskFigures, TaskMeter
from corral.monitor.agent.task_names import TaskNames, names_in_environment
from corral.monitor.agent.task_samples import power_values
from tests.devices.measured_nvml import Measured, MeasuredNvml
from tests.model.metric_mistakes import mistakes
from tests.reserved import free_port

MIB = 2**20
PROGRAM = """
import os, sys, time
held = bytearray(b"x" * (48 << 20))
if os.fork() == 0:
    while True: sum(range(100000))
print("begun", flush=True)
time.sleep(600)
"""


class Tree:
    """A task of two processes: one holds memory, its child computes."""

    def __init__(self, attempt: str) -> None:
        environment = dict(os.environ, CORRAL_ATTEMPT=attempt, CORRAL_JOB_NAME="digits", PAI_USER_NAME="ann")
        self.attempt = AttemptId(attempt)
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, start_new_session=True
        )
        self.pid = self._process.pid
        assert self._process.stdout is not None and self._process.stdout.readline() == b"begun\n"

    def end(self) -> None:
        os.killpg(self.pid, 9)
        self._process.communicate()


def named(number: int, attempt: int = 0) -> str:
    """An attempt's id that no other test on this machine has."""
    return f"{number:013d}.0.worker.{number % 1000}.{attempt}"


@pytest.fixture
def tree() -> Iterator[Tree]:
    made = Tree(named(free_port()))
    yield made
    made.end()


def only(tree: Tree, meter: TaskMeter) -> TaskFigures:
    (found,) = meter.measure(lambda attempt, pid: attempt == tree.attempt)
    return found


def test_a_real_process_tree_is_measured(tree: Tree) -> None:
    meter = TaskMeter()
    first = only(tree, meter)
    assert first.cpu_percent is None and len(first.pids) == 2 and first.pids[0] == tree.pid and first.threads == 2
    while (found := only(tree, meter)).cpu_seconds < first.cpu_seconds + 0.2:
        time.sleep(0.05)
    assert found.cpu_percent is not None and found.cpu_percent >= 0
    assert found.memory is not None and 48 * MIB < found.memory < 400 * MIB
    assert found.memory_limit > 256 * MIB and found.received_rate is None


def test_a_counter_never_falls_when_a_process_ends(tree: Tree) -> None:
    meter = TaskMeter()
    while (before := only(tree, meter)).cpu_seconds < 0.3:
        time.sleep(0.05)
    os.kill(before.pids[1], 9)
    while len((after := only(tree, meter)).pids) > 1:
        time.sleep(0.05)
    assert after.cpu_seconds >= before.cpu_seconds


DCGM = ("0", "GPU-1", "0000:07:00.0", "nvidia0", "NVIDIA A100-SXM4-40GB", "node1")


def test_the_power_of_a_shared_device_is_told_in_equal_parts_and_of_a_silent_one_not_at_all() -> None:
    powers = (300.0, 90.0, None)
    devices = [DeviceFigures("nvidia", at, f"GPU-{at}", power=power) for at, power in enumerate(powers)]
    held = {"a": {"GPU-0"}, "b": {"GPU-0", "GPU-1"}, "c": {"GPU-1", "GPU-2"}, "d": set[str]()}
    tasks = [
        (
            TaskFigures(AttemptId(f"{job}.0.worker.0.0"), (), 0.0, None, None, 0, None, None, None, None, None, 1),
            TaskNames("ann", job, "worker", "0", job, "q", frozenset(own)),
        )
        for job, own in held.items()
    ]
    found = {each.labels[1]: each.value for each in power_values(tasks, devices)}
    assert found == {"a": 150.0, "b": 150.0 + 45.0}


def test_a_collector_tells_a_tasks_series_with_its_names_and_devices(tree: Tree) -> None:
    board = Measured("0000:07:00.0", "GPU-1", use=80, used=10 << 30, pids=[tree.pid, 2**22 + 1])
    idle = Measured("0000:0f:00.0", "GPU-2", used=30 * MIB)
    collector = Collector(find=lambda: NvmlReader(MeasuredNvml([board, idle])), host="node1")

    def name(attempt: AttemptId, pid: int) -> TaskNames | None:
        return names_in_environment(attempt, pid) if attempt == tree.attempt else None

    collector.collect(name)
    samples = collector.collect(name)
    assert list(mistakes(samples)) == []
    values = {(each.family, each.labels): each.value for each in samples.values}
    job, _, role, index, _ = tree.attempt.split(".")
    task = ("ann", "digits", role, index, job, "unknown")
    assert values["task_cpu_percent", task] >= 0 and values["task_mem_usage_byte", task] > 48 * MIB
    assert values["task_gpu_percent", (*task, "0")] == 80 and values["task_gpu_mem_percent", (*task, "0")] == 25
    assert ("task_gpu_percent", (*task, "1")) not in values
    assert values["corral_task_power_watts", task] == values["DCGM_FI_DEV_POWER_USAGE", DCGM]
    assert values["gpu_utilization", ("0", "nvidia")] == 80 and values["configured_gpu_count", ()] == 2
    assert values["nvidiasmi_memory_leak_count", ("1",)] == 1 and ("nvidiasmi_memory_leak_count", ("0",)) not in values
    assert values["DCGM_FI_DEV_GPU_UTIL", DCGM] == 80 and values["DCGM_FI_DEV_FB_USED", DCGM] == 10 * 1024
    assert values["gpu_used_by_external_process_count", ("0", str(2**22 + 1))] == 1
    assert values["corral_device_use_ratio", ("nvidia", "0", "GPU-1", "NVIDIA A100-SXM4-40GB")] == 0.8
    assert values["corral_agent_tasks", ("measured",)] == 1 and values["node_memory_MemTotal_bytes", ()] > 256 * MIB


def test_a_part_that_fails_leaves_the_others() -> None:
    library = MeasuredNvml([Measured("0000:07:00.0", "GPU-1")])
    library.driver = False
    collector = Collector(find=lambda: NvmlReader(library), parts=("devices", "tasks"))
    for failures in (1, 2):
        values = _values(collector.collect(lambda attempt, pid: None))
        assert values["corral_agent_failures_total", ("devices",)] == failures
        assert (
            values["corral_agent_failures_total", ("tasks",)] == 0
            and ("gpu_utilization", ("0", "nvidia")) not in values
        )
    library.driver = True
    values = _values(collector.collect(lambda attempt, pid: None))
    assert values["corral_agent_failures_total", ("devices",)] == 2 and values["gpu_utilization", ("0", "nvidia")] == 0
    collector.close()
    assert library.open == 0


def _values(samples: Samples) -> dict[tuple[str, tuple[str, ...]], float]:
    return {(each.family, each.labels): each.value for each in samples.values}


def _made_up(proc: Path, pid: int, attempt: str, ticks: int = 100) -> None:
    (proc / str(pid)).mkdir(parents=True, exist_ok=True)
    (proc / str(pid) / "environ").write_text(f"A=b\0CORRAL_ATTEMPT={attempt}\0")
    (proc / str(pid) / "stat").write_text(f"{pid} (x) S 1 {pid} 0 0 0 0 0 0 0 0 {ticks} 0 0 0 0 0 1 0 {pid} 0")


def test_ten_thousand_tasks_are_bounded(tmp_path: Path) -> None:
    for number in range(10_000):
        _made_up(tmp_path, 100 + number, named(number))
    collector = Collector(find=lambda: None, parts=("devices", "tasks"), proc=str(tmp_path), groups=str(tmp_path))
    samples = collector.collect(lambda attempt, pid: names_in_environment(attempt, pid, str(tmp_path)))
    assert list(mistakes(samples)) == []
    values = _values(samples)
    assert values[TaskMetric.TASKS, ("measured",)] == MOST_TASKS
    assert values[TaskMetric.TASKS, ("left-out",)] == 10_000 - MOST_TASKS
    by_family = [name for name, _ in values]
    assert max(map(by_family.count, set(by_family))) == MOST_TASKS


def test_of_two_attempts_of_a_task_the_later_one_is_told(tmp_path: Path) -> None:
    _made_up(tmp_path, 7, named(1, attempt=9), ticks=100)
    _made_up(tmp_path, 8, named(1, attempt=10), ticks=500)
    collector = Collector(find=lambda: None, parts=("devices", "tasks"), proc=str(tmp_path), groups=str(tmp_path))
    samples = collector.collect(lambda attempt, pid: names_in_environment(attempt, pid, str(tmp_path)))
    assert list(mistakes(samples)) == []
    (seconds,) = [each.value for each in samples.values if each.family == TaskMetric.CPU_SECONDS]
    assert seconds == 500 / os.sysconf("SC_CLK_TCK")


def test_a_pid_that_another_process_has_now_is_looked_at_anew(tmp_path: Path) -> None:
    _made_up(tmp_path, 7, named(1))
    meter = TaskMeter(str(tmp_path), str(tmp_path))
    assert [each.attempt for each in meter.measure()] == [named(1)]
    _made_up(tmp_path, 7, named(2))
    assert [each.attempt for each in meter.measure()] == [named(1)]  # its start is the same
    text = (tmp_path / "7" / "stat").read_text()
    (tmp_path / "7" / "stat").write_text(text.replace(" 7 0", " 99 0"))
    assert [each.attempt for each in meter.measure()] == [named(2)]


def test_a_task_in_a_group_of_version_2_has_the_groups_figures(tmp_path: Path) -> None:
    now, attempt = [100.0], named(1)
    group = tmp_path / "groups" / "corral-1" / attempt
    group.mkdir(parents=True)
    _made_up(tmp_path, 7, attempt)
    (tmp_path / "7" / "cgroup").write_text(f"0::/corral-1/{attempt}\n")
    (tmp_path / "meminfo").write_text("MemTotal: 1048576 kB\n")
    (group / "cpu.stat").write_text("usage_usec 1000000\n")
    (group / "memory.current").write_text(str(8 * MIB))
    (group / "memory.max").write_text(str(64 * MIB))
    meter = TaskMeter(str(tmp_path), str(tmp_path / "groups"), monotonic=lambda: now[0])
    meter.measure()
    now[0] = 110.0
    (group / "cpu.stat").write_text("usage_usec 16000000\n")
    (found,) = meter.measure()
    assert found.cpu_percent == 150 and found.cpu_seconds == 16
    assert (found.memory, found.memory_limit) == (8 * MIB, 64 * MIB)


def test_without_a_task_no_process_is_looked_at(tmp_path: Path) -> None:
    runs = [True]
    _made_up(tmp_path, 7, named(7))
    collector = Collector(parts=("tasks",), proc=str(tmp_path), groups=str(tmp_path), has_tasks=lambda: runs[0])

    def tasks() -> dict[str, float]:
        found = collector.collect(lambda attempt, pid: TaskNames("ann", "digits", "worker", "0", "j", "default"))
        return {each.labels[0]: each.value for each in found.values if each.family == TaskMetric.TASKS}

    assert tasks() == {"measured": 1, "left-out": 0}
    runs[0] = False
    assert tasks() == {"measured": 0, "left-out": 0}
    runs[0] = True
    assert tasks() == {"measured": 1, "left-out": 0}
