"""Finish-time fairness: how much longer jobs took than on an equal share of the machines that is theirs alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from corral.sim.results import JobResult

UNFAIR: Final = 1.05
"""Jobs above this ratio count as treated unfairly, as in Shockwave (Zheng et al., NSDI 2023)."""


def finish_time_ratios(jobs: Sequence[JobResult], devices: int) -> list[float]:
    """Return rho of each job that has finished, as `ratio_of_each` does."""
    return [ratio for ratio in ratio_of_each(jobs, devices) if ratio is not None]


def ratio_of_each(jobs: Sequence[JobResult], devices: int) -> list[float | None]:
    """Return rho of each job: its completion time over that on an exclusive 1/n of the devices.

    Themis (Mahajan et al., NSDI 2020) defines the ratio; n is the mean number of jobs in the system while the job is in
    it. A job of d devices that gets less than d by its share takes turns on it, as in Gavel (Narayanan et al., OSDI
    2020): it takes `seconds` x max(1, n d / devices). Unfinished jobs and jobs without work have none. O(jobs log jobs).
    """
    lived = _job_seconds(jobs)
    ratios: list[float | None] = []
    for job in jobs:
        if not (job.finished and job.seconds > 0 and job.completion_seconds > 0):
            ratios.append(None)
            continue
        present = (lived[job.ended] - lived[job.submitted]) / job.completion_seconds
        alone = job.seconds * max(1.0, present * job.devices / devices)
        ratios.append(job.completion_seconds / alone)
    return ratios


def _job_seconds(jobs: Sequence[JobResult]) -> dict[float, float]:
    """Return, for each time at which a job comes or goes, the seconds until then that jobs were in the system."""
    changes = sorted([*((job.submitted, 1) for job in jobs), *((job.ended, -1) for job in jobs)])
    found, total, count, before = {}, 0.0, 0, 0.0
    for at, group in groupby(changes, key=lambda change: change[0]):
        total += count * (at - before)
        found[at] = total
        count += sum(change for _, change in group)
        before = at
    return found
