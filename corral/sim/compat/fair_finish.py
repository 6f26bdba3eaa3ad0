"""Themis' finish-time fairness on one type of GPU in the convex form of Gavel and Shockwave (table B)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from corral.sim.compat.muri_themis import fairest_fractions
from corral.sim.compat.rounds import RoundJob


class FairFinish:
    """Minimises the largest ratio of a job's finish time to its finish time on an equal share of the cluster.

    Themis (Mahajan et al., NSDI 2020), without its auction. The time on an equal share accumulates: steps done since the
    last allocation divided by the speed on the share of then. O(jobs) a step of the bisection.
    """

    shuffles_types = False
    skips_zero = False

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        self.shared_so_far: dict[int, float] = {}
        self.before: dict[int, tuple[float, float]] = {}

    def fractions(self, jobs: Sequence[RoundJob], now: float) -> Mapping[int, Sequence[float]]:
        """Return the fraction of time of each job."""
        waited, work, gpus = [], [], []
        for job in jobs:
            speed = job.throughput[0] * min(1.0, self.gpus / (len(jobs) * job.gpus))
            so_far = self.shared_so_far.get(job.number, 0.0)
            if job.number in self.before:
                remaining, rate = self.before[job.number]
                so_far += (remaining - job.remaining) / rate
            self.shared_so_far[job.number] = so_far
            self.before[job.number] = (job.remaining, speed)
            alone = so_far + job.remaining / speed
            waited.append((now - job.arrival) / alone)
            work.append(max(job.remaining, 0.0) / job.throughput[0] / alone)
            gpus.append(float(job.gpus))
        solved = fairest_fractions(np.array(waited), np.array(work), np.array(gpus), float(self.gpus))
        return {job.number: [float(x)] for job, x in zip(jobs, solved, strict=True)}
