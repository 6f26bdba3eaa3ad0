"""Jobs, start overheads and the cluster of table A: Muri's traces (Zhao et al., SIGCOMM 2022)."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from corral.sim.trace import TraceProblem

SLOWDOWN: Final = 1.015
"""An iteration takes this multiple of its profiled time."""

OTHER_OVERHEAD: Final = 10.0
"""Start overhead of a model that the table lacks, in seconds."""

_OVERHEAD_STEPS: Final[dict[str, tuple[tuple[int, float], ...]]] = {
    "vgg16": ((1, 7), (4, 8), (8, 9), (32, 10)),
    "vgg19": ((1, 7), (4, 8), (8, 9), (16, 10)),
    "resnet18": ((1, 4), (2, 5), (8, 7)),
    "shufflenet_v2_x1_0": ((1, 4), (4, 5), (16, 7), (32, 8)),
    "a2c": ((1, 38), (2, 39), (8, 46)),
    "dqn": ((1, 5), (4, 6), (16, 8)),
}
"""Start overhead in seconds from a number of GPUs on, by model (benchmarks.md, table A)."""


@dataclass(frozen=True)
class MuriJob:
    """One job of a trace: times in seconds, the size in whole GPUs."""

    gpus: int
    submitted: float
    iterations: int
    iteration_seconds: float
    overhead: float
    stages: tuple[float, ...] = ()
    """Seconds of an iteration on each kind of resource: storage and processors, GPUs, network."""
    declared: float = 0.0
    """Seconds that the trace says the job takes."""


@dataclass(frozen=True)
class Nodes:
    """A cluster of equal nodes."""

    count: int
    gpus_per_node: int

    @property
    def gpus(self) -> int:
        """Return the GPUs of the whole cluster."""
        return self.count * self.gpus_per_node


def start_overhead(model: str, gpus: int) -> float:
    """Return the seconds that a start of `model` on `gpus` GPUs loses."""
    lost = OTHER_OVERHEAD
    for least, seconds in _OVERHEAD_STEPS.get(model, ()):
        if gpus >= least:
            lost = seconds
    return lost


STAGES: Final = ("resource_time_0", "resource_time_1", "resource_time_2")
"""The columns with the milliseconds of an iteration on each kind of resource."""


def read_muri(lines: Iterable[str], nodes: Nodes, *, shares: bool = False, slowdown: float = SLOWDOWN) -> list[MuriJob]:
    """Read a trace in the CSV format of Muri, in the order of the file.

    An iteration takes `slowdown` times as long as its profile says. With `shares` the columns that only policies which
    share GPUs use are read too. Raises TraceProblem, which names the line, for a missing column, a number that is none or
    negative, or a job that is larger than the cluster.
    """
    jobs = []
    for number, row in enumerate(csv.DictReader(lines), 2):
        try:
            gpus, iterations = int(row["num_gpu"]), int(row["iterations"])
            submitted, milliseconds = float(row["submit_time"]), float(row["iteration_time"])
            model = row["model_name"]
            stages = tuple(float(row[stage]) / 1000 for stage in STAGES) if shares else ()
            declared = float(row["duration"]) / 1000 if shares else 0.0
        except KeyError as missing:
            raise TraceProblem(number, f"the column {missing.args[0]} is missing") from None
        except (TypeError, ValueError):
            raise TraceProblem(number, "a number is missing or no number") from None
        if not (1 <= gpus <= nodes.gpus and iterations >= 1 and submitted >= 0 and 0 < milliseconds < float("inf")):
            raise TraceProblem(number, f"a value is out of range (GPUs 1 to {nodes.gpus}, times of 0 or more)")
        if not (all(0 <= stage < float("inf") for stage in stages) and 0 <= declared < float("inf")):
            raise TraceProblem(number, "the times of the resources, or the duration, are out of range")
        overhead = start_overhead(model, gpus)
        seconds = milliseconds * slowdown / 1000
        jobs.append(MuriJob(gpus, submitted / 1000, iterations, seconds, overhead, stages, declared))
    return jobs
