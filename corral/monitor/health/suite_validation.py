"""Validate a node with a benchmark suite: the job that runs those of its benchmarks which one node can run alone."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from corral.benchmarks.suite.document import Suite, read_suite
from corral.benchmarks.suite.jobs import arguments, processes_of
from corral.benchmarks.suites.named import program_texts
from corral.kernel.errors import InvalidInput
from corral.model.inventory import Node
from corral.monitor.health.validation import validation_memory

_BETWEEN: Final = "network"
"""The program that measures ways between nodes."""
_LONGEST_SECONDS: Final = 4 * 3600
_BESIDE_SECONDS: Final = 300
_UNPACK: Final = """\
import json, os, subprocess, sys, tempfile
with tempfile.TemporaryDirectory() as folder:
    for name, text in json.loads(sys.argv[1]).items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    words = [sys.executable, "-m", "corral.benchmarks.programs.validate", *sys.argv[2:]]
    sys.exit(subprocess.run(words, env={**os.environ, "PYTHONPATH": folder}).returncode)
"""
"""The program of the task: it writes the benchmarks' programs to a folder of its own and runs them."""


def suite_job(node: Node, text: bytes) -> str:
    """Return the document of the job that runs a suite's benchmarks on one node.

    Raises InvalidInput for a suite that is not valid, or of which one node can run nothing.
    """
    suite = read_suite(text)
    devices = sum(device.healthy and device.parent < 0 for device in node.devices)
    runs = _runs(suite, devices)
    if not runs:
        raise InvalidInput("bad-validation", "The suite has no benchmark that one node can run alone.")
    tool = f"suite {hashlib.sha256(text).hexdigest()[:12]}"
    command = ["python3", "-c", _UNPACK, json.dumps(program_texts()), json.dumps(runs), tool]
    role = {
        "replicas": 1,
        "command": command,
        "resources": {"cpu": 1, "memory": validation_memory(node, devices, least=2, of_device=8), "devices": devices},
        "retryPolicy": {"maxRetries": 0},
    }
    seconds = min(_LONGEST_SECONDS, _BESIDE_SECONDS + sum(run["seconds"] for run in runs))
    return json.dumps(
        {
            "name": "validation",
            "framework": "shell",
            "roles": {"check": role},
            "retryPolicy": {"maxRetries": 0},
            "maxDuration": f"{seconds}s",
        }
    )


def sku_of(node: Node) -> str:
    """Return the name under which a node's like have a baseline, as `corral benchmark run` has it."""
    whole = [device for device in node.devices if device.healthy and device.parent < 0]
    model = next((device.model for device in node.devices), "")
    model = model or node.labels.get("node.kubernetes.io/instance-type", "")
    return f"{len(whole)}x {model}" if whole else model


def _runs(suite: Suite, devices: int) -> list[dict[str, Any]]:
    """What the task runs: each benchmark in its modes for one node."""
    return [
        {
            "words": [*arguments(benchmark), f"--processes={processes_of(mode, devices)}"],
            "seconds": benchmark.timeout_seconds,
            "gang": mode.name != "local",
        }
        for benchmark in suite.benchmarks
        if benchmark.kind.program != _BETWEEN
        for mode in benchmark.modes
        if mode.name != "mpi" and mode.nodes in (None, 1)
    ]
