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


def check_document(
    machines: Sequence[Machine], check: str, name: str, *, seconds: int, image: str = ""
) -> dict[str, Any]:
    """Return the job document whose tasks check their nodes before a command that does nothing, one on each node.

    Raises InvalidInput for a network of fewer than two nodes.
    """
    if check == "network" and len(machines) < 2:
        raise InvalidInput("too-few-nodes", "A network has two nodes at least; name more of them.")
    role = {"replicas": len(machines), "resources": {"cpu": "100m", "memory": "256Mi"}, "command": ["true"]}
    return {
        "name": name,
        "framework": "shell",
        "roles": {"worker": role | ({"image": image} if image else {})},
        "nodes": {"include": [machine.name for machine in machines]},
        "sharing": {"exclusive": True, "oneTaskPerNode": True},
        "priority": "oppo",
        "maxDuration": f"{seconds + 600}s",
        "preflight": {"checks": [check], "timeoutSeconds": seconds},
        "labels": {LABEL: check},
    }


def arguments(benchmark: Benchmark) -> list[str]:
    """Return what the program `run` is told of a benchmark: its name, program, parameters and models."""
    words = [benchmark.name, f"--program={benchmark.kind.program}"]
    words.append(f"--parameters={json.dumps(benchmark.parameters, separators=(',', ':'))}")
    return [*words, f"--models={','.join(benchmark.models)}"] if benchmark.models else words


def processes_of(mode: Mode, devices: int) -> int:
    """Return how many processes a mode starts on a node with so many devices."""
    return mode.processes or max(1, devices)


def _command(run: Run, programs: Programs) -> list[str]:
    mode = run.mode
    words = [programs.python, "-m", "corral.benchmarks.programs.run", *arguments(run.benchmark)]
    if mode.name == "local":
        return [*words, f"--processes={processes_of(mode, run.machines[0].devices)}"]
    places = (f"$(peer:worker-{at}:host):$(peer:worker-{at}:port:{_PORT})" for at in range(len(run.machines)))
    words.append(f"--gang={','.join(places)}")
    if mode.name == "mpi":
        return [*words, "--mpi"]
    return [*words, f"--processes={mode.processes}"]
