"""Jobs of table B, Shockwave's trace of 120 jobs (Zheng et al., NSDI 2023), and how they change their batch sizes."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final

from corral.sim.compat.rounds import RoundJob
from corral.sim.trace import TraceProblem
from corral.sim.traces.rows import without_problems
from corral.sim.traces.shockwave import shockwave_jobs
from corral.sim.traces.throughputs import read_speeds

SAMPLES: Final = {
    "ResNet-18": 50_000,
    "ResNet-50": 100_000,
    "Transformer": 10_000,
    "LM": 59_675,
    "Recommendation": 117_907,
}
"""Samples of one epoch by model."""

LARGEST: Final = {"ResNet-18": 256, "ResNet-50": 128, "Transformer": 128, "LM": 80, "Recommendation": 8192}
"""The batch size that adaptation does not exceed, by model."""

Speeds = Mapping[tuple[str, int, int], float]
"""Steps a second by model, batch size and GPUs."""
Schedule = Mapping[tuple[str, int, int], tuple[tuple[int, int], ...]]
"""Steps (from epoch, batch size) of the gradient-noise schedule, by model, initial batch size and GPUs."""


@dataclass
class Batches:
    """A job's batch size and what decides on it."""

    model: str
    initial: int
    size: int
    mode: str
    pending: int | None = None

    @property
    def steps(self) -> int:
        """Return the steps of an epoch."""
        return steps_of_epoch(self.model, self.size)


def steps_of_epoch(model: str, size: int) -> int:
    """Return how many steps one epoch takes at a batch size."""
    return ceil(SAMPLES[model] / size)


def critical(model: str, initial: int, epoch: int) -> bool:
    """Return whether accordion keeps the initial batch size in this epoch."""
    if model == "LM":
        return epoch < 10
    if model == "Recommendation":
        return epoch < (30 if initial <= 1024 else 40 if initial == 2048 else 10)
    if model == "ResNet-50":
        return epoch % 30 < 10
    if model == "ResNet-18":
        return epoch < (20 if initial == 256 else 10) or 150 <= epoch <= 159 or 250 <= epoch <= 259
    return True


class Adaptation:
    """Decides on batch sizes after each round and changes them when a job's next slice ends."""

    def __init__(self, speeds: Speeds, schedule: Schedule) -> None:
        self.speeds = speeds
        self.schedule = schedule

    def decide(self, jobs: Iterable[RoundJob]) -> None:
        """Set the batch size that each job shall have next, where it differs from the present one."""
        for job in jobs:
            batches = _batches(job)
            wanted = self._wanted(batches, job.gpus, ceil(job.done / batches.steps))
            if wanted is not None and (batches.model, wanted, job.gpus) in self.speeds:
                batches.pending = wanted

    def apply(self, job: RoundJob) -> None:
        """Change to the pending batch size. A part of an epoch counts as a whole one, as in the anchor."""
        batches = _batches(job)
        if batches.pending is None:
            return
        old, new = batches.size, batches.pending
        old_steps, new_steps = batches.steps, steps_of_epoch(batches.model, new)
        epochs = ceil(job.total / old_steps)
        total = ceil(job.total * old / new)
        if ceil(total / new_steps) != epochs:
            total = epochs * new_steps
        job.done = ceil(job.done / old_steps) * new_steps
        job.total = total
        batches.size, batches.pending = new, None
        job.throughput = [self.speeds[batches.model, new, job.gpus]]

    def _wanted(self, batches: Batches, gpus: int, epoch: int) -> int | None:
        top = LARGEST[batches.model]
        if batches.initial >= top:
            return None
        if batches.mode == "gns":
            steps = self.schedule.get((batches.model, batches.initial, gpus), ())
            planned = max((size for start, size in steps if start <= epoch + 1), default=0)
            return 2 * batches.size if planned > batches.size and batches.size < top else None
        if batches.mode == "accordion" and batches.model != "Transformer":
            kept = critical(batches.model, batches.initial, epoch)
            if not kept and batches.size == batches.initial:
                return top
            if kept and batches.size != batches.initial:
                return batches.initial
        return None


def _batches(job: RoundJob) -> Batches:
    assert isinstance(job.payload, Batches)
    return job.payload


_KIND: Final = re.compile(r"(.+) \(batch size (\d+)\)")


def speeds_on(text: str, gpu: str) -> dict[tuple[str, int, int], float]:
    """Read the steps a second of one type of GPU from a table of throughputs (JSON). Raises ValueError if it is none."""
    found = {}
    for (kind, gpus), (speed,) in read_speeds(text, [gpu]).items():
        if match := _KIND.fullmatch(kind):
            found[match[1], int(match[2]), gpus] = speed
    return found


def read_schedule(lines: Iterable[str]) -> dict[tuple[str, int, int], tuple[tuple[int, int], ...]]:
    """Read the gradient-noise schedules. Raises TraceProblem, which names the line."""
    found: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
    for number, row in enumerate(csv.DictReader(lines), 2):
        try:
            key = (row["model"], int(row["initial_batch_size"]), int(row["scale_factor"]))
            found.setdefault(key, []).append((int(row["from_epoch"]), int(row["batch_size"])))
        except (KeyError, TypeError, ValueError):
            raise TraceProblem(number, "a field of the schedule is missing or no number") from None
    return {key: tuple(sorted(steps)) for key, steps in found.items()}


def read_shockwave(lines: Iterable[str], speeds: Speeds) -> list[RoundJob]:
    """Read the trace of tab-separated fields, in order of arrival. Raises TraceProblem, which names the line."""
    jobs = []
    for line, job in without_problems(shockwave_jobs(lines)):
        named = _KIND.fullmatch(job.kind)
        if not job.steps.is_integer():
            raise TraceProblem(line, "steps are no whole number")
        if named is None or (speed := speeds.get((named[1], int(named[2]), job.gpus))) is None:
            raise TraceProblem(line, f"no throughput is known for {job.kind} on {job.gpus} GPUs")
        batches = Batches(named[1], int(named[2]), int(named[2]), job.mode)
        jobs.append(RoundJob(job.number, job.arrival, job.gpus, int(job.steps), [speed], batches))
    return sorted(jobs, key=lambda job: job.arrival)


def read_alone(lines: Iterable[str]) -> dict[int, float]:
    """Read each job's time alone in seconds, from the profiles. Raises TraceProblem, which names the line."""
    found = {}
    for number, row in enumerate(csv.DictReader(lines), 2):
        try:
            found[int(row["job_id"])] = float(row["exclusive_s"])
        except (KeyError, TypeError, ValueError):
            raise TraceProblem(number, "a field of the profile is missing or no number") from None
    return found
