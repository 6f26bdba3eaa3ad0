"""The jobs of a suite: which benchmark runs on which nodes, and the document of each job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from corral.benchmarks.suite.document import Benchmark, Mode, Suite
from corral.kernel.errors import InvalidInput

LABEL: Final = "corral.dev/benchmark"
_PORT: Final = "bench"
_MOST_ADDRESSES: Final = 256
"""Tasks whose addresses fit on a command line; a gang of more cannot be told them."""


class Machine(NamedTuple):
    """A node that is measured."""

    name: str
    """ENGINE/NODE."""
    cpu_millis: int
    """What each task asks for."""
    memory_bytes: int
    devices: int
    model: str = ""
    """The devices' model; of a node without devices, its processors' where it is known."""


class Run(NamedTuple):
    """One job: a benchmark in one of its modes on some nodes."""

    benchmark: Benchmark
    mode: Mode
    machines: tuple[Machine, ...]


class Programs(NamedTuple):
    """Where the programs of the tasks come from."""

    python: str = "python3"
    image: str = ""


def runs_of(suite: Suite, machines: Sequence[Machine]) -> list[Run]:
    """Return every run of a suite: benchmarks in their order, and of each the machines in theirs.

    Raises InvalidInput when a mode needs more machines than there are.
    """
    found: list[Run] = []
    for benchmark in suite.benchmarks:
        for mode in benchmark.modes:
            found += [Run(benchmark, mode, group) for group in _groups(benchmark, mode, machines)]
    return found


def _groups(benchmark: Benchmark, mode: Mode, machines: Sequence[Machine]) -> list[tuple[Machine, ...]]:
    if mode.name == "local":
        return [(machine,) for machine in machines]
    size = len(machines) if mode.nodes is None else mode.nodes
    if size > len(machines):
        message = f"{benchmark.name} needs {size} nodes, and there are {len(machines)}."
        raise InvalidInput("too-few-nodes", message)
    if size > _MOST_ADDRESSES:
        message = f"{benchmark.name} would run on {size} nodes together; at most {_MOST_ADDRESSES} do: set node_num."
        raise InvalidInput("too-many-nodes", message)
    return [tuple(machines[at : at + size]) for at in range(0, len(machines) - size + 1, size)]


def document_of(run: Run, name: str, programs: Programs) -> dict[str, Any]:
    """Return the job document of a run: a task on each of its nodes, with all devices, beside no other job."""
    devices = min(machine.devices for machine in run.machines)
    resources = {
        "cpu": f"{max(100, min(machine.cpu_millis for machine in run.machines))}m",
        "memory": max(64 * 2**20, min(machine.memory_bytes for machine in run.machines)),
        "devices": devices,
    }
    gang = run.mode.name != "local"
    role = {
        "replicas": len(run.machines),
        "resources": {key: value for key, value in resources.items() if value},
        "command": _command(run, programs),
        "image": programs.image,
        "ports": [_PORT] if gang else None,
        "processesPerReplica": run.mode.processes if run.mode.name == "mpi" else None,
    }
    return {
        "name": name,
        "framework": "mpi" if run.mode.name == "mpi" else "shell",
        "roles": {"worker": {key: value for key, value in role.items() if value}},
        "nodes": {"include": [machine.name for machine in run.machines]},
        "sharing": {"exclusive": True, "oneTaskPerNode": True},
        "priority": "oppo",
        "maxDuration": f"{run.benchmark.timeout_seconds}s",
        "labels": {LABEL: run.benchmark.name.replace(":", ".")},
    }


def _command(run: Run, programs: Programs) -> list[str]:
    benchmark, mode = run.benchmark, run.mode
    words = [programs.python, "-m", "corral.benchmarks.programs.run", benchmark.name]
    words.append(f"--program={benchmark.kind.program}")
    words += [f"--parameters={json.dumps(benchmark.parameters, separators=(',', ':'))}"]
    if benchmark.models:
        words.append(f"--models={','.join(benchmark.models)}")
    if mode.name == "local":
        return [*words, f"--processes={mode.processes}"]
    places = (f"$(peer:worker-{at}:host):$(peer:worker-{at}:port:{_PORT})" for at in range(len(run.machines)))
    words.append(f"--gang={','.join(places)}")
    if mode.name == "mpi":
        return [*words, "--mpi"]
    return [*words, f"--processes={mode.processes}"]
