"""Table E: devices of the openb cluster that are allocated when pods have asked for 130 % of them, in percent.

The protocol is FGD's (Weng et al., ATC 2023): pods and random clones of them come in random order, one a second, until they
ask for so many devices; nothing ever ends. A pod that does not fit waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from corral.model.configuration import Configuration
from corral.model.inventory import Device, Inventory, Node
from corral.sim.files import read_bounded
from corral.sim.honest.pieces import Piece
from corral.sim.honest.questions import question
from corral.sim.machines import ENGINE, Site
from corral.sim.simulation import Simulation
from corral.sim.trace import LONGEST_SECONDS, WHOLE, TraceJob
from corral.sim.traces.openb import COLUMNS, MOST_GPUS, needed, whole_numbers
from corral.sim.traces.rows import Columns, Row, read_rows, without_problems

SEEDS: Final = range(42, 52)
"""The seeds of FGD's artifact; its generator is another one."""
NODES: Final = "openb/openb_node_list_gpu_node.csv"
PODS: Final = "openb/openb_pod_list_default.csv"
_NODE_COLUMNS: Final = Columns("list of nodes", frozenset({"sn", "cpu_milli", "memory_mib", "gpu"}))


def pieces(row: str, policy: str, columns: Sequence[str]) -> list[Piece]:
    """Return a piece for each seed; a column is a level of demand, such as `130 %`."""
    return [Piece("E", row, policy, tuple(columns), seed) for seed in SEEDS]


def files(piece: Piece) -> Sequence[str]:
    """Return the lists of nodes and pods."""
    return (NODES, PODS)


def play(piece: Piece, data: Path) -> dict[str, float]:
    """Return the percentage of devices that is allocated at each level of demand."""
    levels = {column: int(column.removesuffix(" %")) for column in piece.columns}
    site, pods = read_site(data / NODES), read_pods(data / PODS)
    jobs = clones(pods, site.devices * WHOLE * max(levels.values()) // 100, piece.seed)
    asked = question(data / PODS, "", piece.policy, seed=piece.seed)
    started = Simulation(jobs, site, asked.rules(site), asked.knobs).started_by(len(jobs))
    total = site.devices * WHOLE
    demand = np.cumsum([_thousandths(job) for job in jobs]) / total
    taken = np.zeros(len(jobs))
    for job in jobs:
        if job.name in started:
            taken[int(started[job.name])] += _thousandths(job)
    allocated = np.cumsum(taken) / total
    return {column: float(100 * allocated[np.rint(demand * 100) == level].mean()) for column, level in levels.items()}


def clones(pods: Sequence[TraceJob], wanted: int, seed: int) -> list[TraceJob]:
    """Return the pods and random clones of them in random order, one a second.

    Cloning ends at the first clone whose thousandths of one device would exceed `wanted` together with all others.
    """
    draw = np.random.Generator(np.random.PCG64(seed))
    found, asked = list(pods), sum(map(_thousandths, pods))
    while asked + (pod := pods[int(draw.integers(len(pods)))]).part * min(1, pod.devices) <= wanted:
        asked += _thousandths(pod)
        found.append(pod)
    return [
        found[index]._replace(name=f"pod-{at}", submitted=float(at), seconds=LONGEST_SECONDS)
        for at, index in enumerate(draw.permutation(len(found)))
    ]


def _thousandths(job: TraceJob) -> int:
    return job.devices * job.part


def read_pods(file: Path) -> list[TraceJob]:
    """Read the list of pods. Raises NotFound, or InvalidInput that names the line."""
    return [job for _, job in without_problems(read_rows(_lines(file), COLUMNS, needed))]


def read_site(file: Path) -> Site:
    """Read the list of nodes. Raises NotFound, or InvalidInput that names the line."""
    nodes = [node for _, node in without_problems(read_rows(_lines(file), _NODE_COLUMNS, _node))]
    return Site(Inventory(ENGINE, tuple(nodes)), Configuration())


def _node(line: int, row: Row) -> Node | str:
    numbers = whole_numbers(row, {"cpu_milli": 10**9, "memory_mib": 10**9, "gpu": MOST_GPUS})
    if isinstance(numbers, str):
        return numbers
    cpu, memory, gpus = numbers
    return Node(
        name=f"{ENGINE}/node{line:05}",
        cells=(("rack", "rack"),),
        devices=tuple(Device(index, f"{line}:{index}", described=True) for index in range(gpus)),
        cpu_millis=cpu,
        memory_bytes=memory << 20,
    )


def _lines(file: Path) -> Iterable[str]:
    return read_bounded(file).decode(errors="replace").splitlines()
