"""Table B: Shockwave's 120 jobs with dynamic batch sizes on 8 nodes of 4 devices, under Corral's own semantics.

A job's work is what it would take alone: its epochs, each at the batch size that its rule of adaptation gives it from the
epoch's beginning. Jobs declare no duration. They report their progress, in epochs, and their batch size every minute, and
policies know nothing else of them. Rho is the anchor's: completion time over the profiled time alone, times the jobs of the
trace over the devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Final

import numpy as np

from corral.kernel.errors import InvalidInput
from corral.scheduler import Regime
from corral.sim.compat.rounds import RoundJob
from corral.sim.compat.shockwave_jobs import (
    LARGEST,
    Batches,
    Schedule,
    Speeds,
    critical,
    read_alone,
    read_schedule,
    read_shockwave,
    speeds_on,
    steps_of_epoch,
)
from corral.sim.fairness import UNFAIR
from corral.sim.files import check_file, read_bounded
from corral.sim.honest.pieces import Piece
from corral.sim.honest.questions import question
from corral.sim.results import Result
from corral.sim.trace import Trace, TraceJob, TraceProblem

MACHINES: Final = "8x4"
REPORT_SECONDS: Final = 60.0
"""How often a job reports its progress."""
_FOLDER: Final = "shockwave"
_TRACE: Final = f"{_FOLDER}/120_multigpu_dynamic.trace"


def pieces(row: str, policy: str, columns: Sequence[str]) -> list[Piece]:
    """Return one piece for the whole row."""
    return [Piece("B", row, policy, tuple(columns))]


def files(piece: Piece) -> Sequence[str]:
    """Return the folder of the trace, its throughputs, schedules and profiles."""
    return [_FOLDER]


def play(piece: Piece, data: Path) -> dict[str, float]:
    """Return the figures of the table under the policy."""
    try:
        jobs, alone = read_jobs(data)
    except TraceProblem as problem:
        raise InvalidInput(
            "trace-line", f"Line {problem.line} of a file in {data / _FOLDER}: {problem.reason}.", line=problem.line
        ) from None
    except ValueError as problem:
        raise InvalidInput("no-measurement", f"The files in {data / _FOLDER} cannot be used: {problem}") from None
    asked = question(data / _TRACE, MACHINES, piece.policy)
    asked = replace(asked, knobs=replace(asked.knobs, reports=REPORT_SECONDS))
    found = figures(asked.simulation(Trace(jobs)).run(), alone)
    return {column: found[column] for column in piece.columns}


def figures(result: Result, alone: dict[str, float]) -> dict[str, float]:
    """Return the columns of the table; `alone` has the profiled seconds of each job by its name."""
    times = [job.completion_seconds for job in result.jobs]
    contention = max(1.0, len(times) / result.devices)
    ratios = [job.completion_seconds / (alone[job.name] * contention) for job in result.jobs]
    return {
        "makespan": result.makespan,
        "JCT": float(np.mean(times)),
        "p99": float(np.percentile(times, 99)),
        "worst ρ": max(ratios),
        "ρ > 1.05": 100 * sum(ratio > UNFAIR for ratio in ratios) / len(ratios),
        "utilisation": result.utilisation,
    }


def read_jobs(data: Path) -> tuple[tuple[TraceJob, ...], dict[str, float]]:
    """Read the jobs, and the profiled seconds of each alone. Raises TraceProblem, NotFound or ValueError."""
    speeds = speeds_on("\n".join(_lines(data, "tacc_throughputs.json")), "v100")
    schedule = read_schedule(_lines(data, "gns_batch_sizes.csv"))
    profiled = read_alone(_lines(data, "job_profiles_120.csv"))
    jobs, alone = [], {}
    for job in read_shockwave(_lines(data, "120_multigpu_dynamic.trace"), speeds):
        if job.number not in profiled:
            raise ValueError(f"job {job.number} has no profile.")
        name, regimes = f"job-{job.number}", regimes_of(job, speeds, schedule)
        seconds = sum(regime.seconds for regime in regimes)
        jobs.append(TraceJob(name, job.arrival, seconds, job.gpus, regimes=regimes))
        alone[name] = profiled[job.number]
    return tuple(jobs), alone


def regimes_of(job: RoundJob, speeds: Speeds, schedule: Schedule) -> tuple[Regime, ...]:
    """Return the work of a job by batch size: the fraction of its epochs, and the seconds that they take alone."""
    batches = job.payload
    assert isinstance(batches, Batches)
    model, epochs = batches.model, ceil(job.total / batches.steps)
    runs: list[list[int]] = []
    for epoch in range(epochs):
        size = _size(batches, job.gpus, epoch, schedule)
        if (model, size, job.gpus) not in speeds:
            size = runs[-1][0] if runs else batches.initial
        if runs and runs[-1][0] == size:
            runs[-1][1] += 1
        else:
            runs.append([size, 1])
    return tuple(
        Regime(float(size), count / epochs, count * steps_of_epoch(model, size) / speeds[model, size, job.gpus])
        for size, count in runs
    )


def _size(batches: Batches, gpus: int, epoch: int, schedule: Schedule) -> int:
    """Return the batch size of an epoch by the job's rule of adaptation."""
    model, initial, largest = batches.model, batches.initial, LARGEST[batches.model]
    if initial >= largest:
        return initial
    if batches.mode == "gns":
        planned = (size for start, size in schedule.get((model, initial, gpus), ()) if start <= epoch)
        return min(largest, max(planned, default=initial))
    return initial if batches.mode != "accordion" or critical(model, initial, epoch) else largest


def _lines(data: Path, name: str) -> Iterable[str]:
    file = data / _FOLDER / name
    check_file(file)
    return read_bounded(file).decode().splitlines()
