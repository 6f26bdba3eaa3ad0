"""Jobs of table C: Gavel's physical-cluster traces and its continuous arrivals (Narayanan et al., OSDI 2020)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from corral.sim.compat.rounds import RoundJob
from corral.sim.trace import TraceProblem
from corral.sim.traces.gavel import read_generated, read_physical
from corral.sim.traces.rows import without_problems
from corral.sim.traces.throughputs import StepJob

TYPES: Final = ("v100", "p100", "k80")
"""Types of GPU in the order in which rounds fill them."""

Speeds = Mapping[tuple[str, int], tuple[float, ...]]
"""Steps a second on each of TYPES, by kind of job and GPUs."""


def read_trace(lines: Iterable[str], speeds: Speeds) -> list[RoundJob]:
    """Read a trace of ten tab-separated fields, in order of arrival. Raises TraceProblem, which names the line."""
    return sorted(_jobs(read_physical(lines), speeds), key=lambda job: job.arrival)


def read_arrivals(lines: Iterable[str], speeds: Speeds) -> list[RoundJob]:
    """Read generated arrivals (CSV with a header). Raises TraceProblem, which names the line."""
    return list(_jobs(read_generated(lines), speeds))


def _jobs(found: Iterable[tuple[int, StepJob | str]], speeds: Speeds) -> Iterator[RoundJob]:
    for line, job in without_problems(found):
        speed = speeds.get((job.kind, job.gpus))
        if speed is None:
            raise TraceProblem(line, f"no throughput is known for {job.kind} on {job.gpus} GPUs")
        steps = int(job.steps) if job.steps.is_integer() else job.steps
        yield RoundJob(job.number, job.arrival, job.gpus, steps, speed)
