"""The openb trace and the protocol of table E: a cluster is filled with clones of pods, and nothing ever ends.

Weng et al., "Beware of Fragmentation" (ATC 2023). GPUs and processors are counted in thousandths (milli), memory in MiB.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corral.sim.trace import TraceProblem
from corral.sim.traces.openb import MILLI, MOST_GPUS, problem_of_request, whole_numbers

TYPICAL_SHARE = 0.95
"""Typical pods are the most frequent shapes that cover this share of the pods."""


class Shape(NamedTuple):
    """What a pod asks for: thousandths of processors, MiB, a number of GPUs, and thousandths of each."""

    cpu: int
    memory: int
    gpus: int
    milli: int


class Machine(NamedTuple):
    """A node's capacity."""

    cpu: int
    memory: int
    gpus: int


@dataclass(frozen=True)
class Typical:
    """A frequent shape and its share among the typical pods; shares add up to 1."""

    cpu: int
    gpus: int
    milli: int
    share: float


def read_machines(lines: Iterable[str]) -> list[Machine]:
    """Read the list of nodes. Raises TraceProblem, which names the line."""
    return [
        Machine(*_numbers(row, number, ("cpu_milli", "memory_mib", "gpu"), (10**9, 10**9, MOST_GPUS)))
        for number, row in enumerate(csv.DictReader(lines), 2)
    ]


def read_pods(lines: Iterable[str]) -> list[Shape]:
    """Read the list of pods, in the order of the file. Raises TraceProblem, which names the line."""
    columns, most = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli"), (10**9, 10**9, MOST_GPUS, MILLI)
    pods = []
    for number, row in enumerate(csv.DictReader(lines), 2):
        cpu, memory, gpus, milli = _numbers(row, number, columns, most)
        if problem := problem_of_request(gpus, milli):
            raise TraceProblem(number, problem)
        pods.append(Shape(cpu, memory, gpus, milli if gpus else 0))
    return pods


def _numbers(row: dict[str, str], line: int, columns: Sequence[str], most: Sequence[int]) -> list[int]:
    values = whole_numbers(row, dict(zip(columns, most, strict=True)))
    if isinstance(values, str):
        raise TraceProblem(line, values)
    return values


def typical_pods(pods: Sequence[Shape]) -> list[Typical]:
    """Return the most frequent shapes that cover 95 % of the pods, the most frequent first, memory left out."""
    counts = Counter((pod.cpu, pod.milli, pod.gpus) for pod in pods)
    ordered = sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)
    chosen: list[tuple[tuple[int, int, int], int]] = []
    covered = 0
    for shape, count in ordered:
        if covered >= TYPICAL_SHARE * len(pods):
            break
        chosen.append((shape, count))
        covered += count
    return [Typical(cpu, gpus, milli, count / covered) for (cpu, milli, gpus), count in chosen]


def inflated(pods: Sequence[Shape], machines: Sequence[Machine], demand: float, seed: int) -> list[Shape]:
    """Return the pods and random clones of them in random order.

    Cloning ends at the first clone whose thousandths of one GPU would exceed `demand` times the cluster's GPUs.
    """
    draw = np.random.Generator(np.random.PCG64(seed))
    wanted = demand * sum(machine.gpus for machine in machines) * MILLI
    result = list(pods)
    asked = sum(pod.gpus * pod.milli for pod in pods)
    while asked + (pod := pods[int(draw.integers(len(pods)))]).milli <= wanted:
        asked += pod.gpus * pod.milli
        result.append(pod)
    return [result[index] for index in draw.permutation(len(result))]
