"""Finish-time fairness of a simulation's jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from corral.model import finish_time
from corral.model.finish_time import Stay

if TYPE_CHECKING:
    from corral.sim.results import JobResult

UNFAIR: Final = 1.05
"""Jobs above this ratio count as treated unfairly, as in Shockwave (Zheng et al., NSDI 2023)."""


def finish_time_ratios(jobs: Sequence[JobResult], devices: int) -> list[float]:
    """Return rho of each job that has finished, as `ratio_of_each` does."""
    return [ratio for ratio in ratio_of_each(jobs, devices) if ratio is not None]


def ratio_of_each(jobs: Sequence[JobResult], devices: int) -> list[float | None]:
    """Return rho of each job (`corral.model.finish_time`); unfinished jobs and jobs without work have none."""
    stays = [Stay(job.submitted, job.ended, job.seconds if job.finished else 0.0, job.devices) for job in jobs]
    return finish_time.finish_time_ratios(stays, devices)
