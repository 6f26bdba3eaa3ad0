"""Measure a node's collector: eight made-up devices and 32 real tasks, in a process of its own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from bench.processes import pss

if TYPE_CHECKING:
    from corral.model.metrics.samples import Samples

TASKS, DEVICES, SECONDS, WARM, ROUNDS = 32, 8, 5.0, 3, 8
PROGRAM = "import os, time\nif os.fork():\n    os.wait()\nelse:\n    time.sleep(600)"
"""A task of two processes."""


def measure() -> dict[str, float]:
    """The collector's share of a core in %, its memory in MB, and the lines of its page."""
    tasks = [_task(number) for number in range(TASKS)]
    try:
        done = subprocess.run([sys.executable, "-m", "bench.node_agent"], stdout=subprocess.PIPE, text=True, check=True)
    finally:
        for task in tasks:
            os.killpg(task.pid, 9)
            task.wait()
    share, memory, lines, found = map(float, done.stdout.split())
    if found < TASKS:
        raise RuntimeError(f"the collector found {found:.0f} of {TASKS} tasks")
    return {"cpu": share, "memory": memory, "lines": lines}


def _task(number: int) -> subprocess.Popen[bytes]:
    attempt = f"bench{os.getpid():08d}.0.worker.{number}.0"
    environment = dict(os.environ, CORRAL_ATTEMPT=attempt, CORRAL_JOB_NAME="bench")
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, start_new_session=True)


def _collect() -> None:
    """Collect in rounds, make the page of each, and print the figures.

    The first rounds do not count: in the steady state processes without a task are known.
    """
    from corral.devices.figures.nvml import NvmlReader
    from corral.monitor.agent.collector import Collector
    from corral.monitor.agent.task_names import names_in_environment
    from corral.service.metrics.exposition import page
    from tests.devices.measured_nvml import Measured, MeasuredNvml

    boards = [Measured(f"00000000:{at:02x}:00.0", f"GPU-{at}", use=50, used=1 << 30) for at in range(DEVICES)]
    collector = Collector(find=lambda: NvmlReader(MeasuredNvml(boards)))

    def round_of() -> tuple[Samples, bytes]:
        samples = collector.collect(names_in_environment)
        return samples, page(samples, everybody=False)

    for _ in range(WARM):
        round_of()
        time.sleep(SECONDS)
    used, begun = _seconds(), time.monotonic()
    for _ in range(ROUNDS - 1):
        round_of()
        time.sleep(SECONDS)
    samples, text = round_of()
    time.sleep(SECONDS)
    share = 100 * (_seconds() - used) / (time.monotonic() - begun)
    found = sum(1 for each in samples.values if each.family == "corral_task_processes" and each.labels[1] == "bench")
    print(share, pss([os.getpid()]), text.count(b"\n"), found)


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    _collect()
