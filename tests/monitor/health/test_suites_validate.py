"""A benchmark suite validates a node: its benchmarks run there one after the other, and their figures are compared."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from corral.kernel.errors import InvalidInput
from corral.model.inventory import Device, Node
from corral.monitor.health.suite_validation import suite_job
from corral.monitor.health.validation import Figures, below_data_sheet, read_figures, validation_job
from corral.spec.job import UnifiedJob

NODE = Node("local/n1", devices=(Device(0, "0"), Device(1, "1"), Device(2, "2", healthy=False)), cpu_millis=8000)
SUITE = b"""
superbench:
  benchmarks:
    process-launch: {parameters: {repeat: 1}}
    cpu-stream: {parameters: {size_mib: 1, repeat: 1}, timeout: 100}
    matmul: {modes: [{name: local, proc_num: devices}], parameters: {size: 16, repeat: 1}}
    tcp-bw: {}
    all-reduce: {modes: [{name: torch.distributed, node_num: 2}, {name: mpi}]}
"""


def command(text: bytes) -> list[str]:
    """The command of the one task."""
    (role,) = job(text).spec.roles
    return list(role.command)


def job(text: bytes) -> UnifiedJob:
    return validation_job(NODE, "validate-n1", suite_job(NODE, text))


def test_the_benchmarks_of_one_node_run_really_and_tell_figures_that_are_rates() -> None:
    words = command(SUITE)
    done = subprocess.run([sys.executable, *words[1:]], capture_output=True, timeout=500, env={"PATH": "/usr/bin:/bin"})
    found = read_figures(NODE, done.stdout, 1.0)
    assert done.returncode == 0, done.stderr
    assert found is not None and found.alike.endswith(words[-1]) and words[-1].startswith("suite ")
    assert found.figures["cpu-stream/copy_bw:0"] > 0
    assert found.figures["process-launch/spawn_per_second:0"] > 0
    assert {"matmul/fp32_flops:0", "matmul/fp32_flops:1"} <= set(found.figures)  # one for each healthy device
    assert not any(name.startswith(("tcp-bw", "all-reduce")) for name in found.figures)


def test_a_benchmark_that_fails_fails_the_validation_and_the_others_still_run() -> None:
    text = SUITE.replace(b"superbench:\n  benchmarks:", b"superbench:\n  benchmarks:\n    mem-bw: {}")
    done = subprocess.run([sys.executable, *command(text)[1:]], capture_output=True, timeout=500)
    assert done.returncode == 1 and b"mem-bw: rank 0: " in done.stderr
    assert b"cpu-stream/copy_bw:0" in done.stdout


def test_a_benchmark_that_takes_too_long_is_ended_and_told() -> None:
    words = command(SUITE)
    runs = [
        {
            "words": ["process-launch", "--program=launch", '--parameters={"repeat":1000}'],
            "seconds": 0.01,
            "gang": False,
        }
    ]
    done = subprocess.run([sys.executable, *words[1:4], json.dumps(runs), words[-1]], capture_output=True, timeout=500)
    assert done.returncode == 1 and b"process-launch did not end within 0 s" in done.stderr


def test_the_job_has_the_time_of_its_benchmarks_and_the_healthy_devices() -> None:
    made = job(SUITE)
    (role,) = made.spec.roles
    assert made.spec.max_duration_seconds == 300 + 600 + 100 + 600
    assert role.resources.devices.millis == 2000


@pytest.mark.parametrize("text", [b"superbench: {benchmarks: {tcp-bw: {}}}", b"superbench: {benchmarks: {odd: {}}}"])
def test_a_suite_that_one_node_cannot_run_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidInput):
        suite_job(NODE, text)


def test_a_device_below_its_data_sheet_fails_its_node_without_any_similar_node() -> None:
    devices = tuple(Device(at, str(at), model="NVIDIA A100-SXM4-80GB") for at in range(2))
    node = Node("local/n1", devices=devices, cpu_millis=8000)
    slow = Figures(node.name, "", 1.0, {"mem-bw/d2d_bw:0": 900.0, "mem-bw/d2d_bw:1": 300.0})
    assert below_data_sheet(node, slow).startswith("mem-bw/d2d_bw:1 is 300, ")
    assert below_data_sheet(NODE, slow) == ""
