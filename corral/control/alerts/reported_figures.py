"""What running jobs report of their work, as series that alert rules read; `/metrics` does not tell them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from corral.control.core.world import Job
from corral.model.metrics.job_figures import figures_of
from corral.monitor.rules.evaluation import LOOKBACK

Named = tuple[str, Mapping[str, str], float]
"""A family, labels, and a value."""
FRESH_SECONDS: Final = LOOKBACK
"""Seconds for which a report counts: a job that reports nothing any more has no series."""


def reported_figures(jobs: Iterable[Job], now: float) -> Iterator[Named]:
    """The figures of the latest reports, with the labels that series of tasks have."""
    for job in jobs:
        report = job.run.report
        if report is None or not abs(now - report.at) <= FRESH_SECONDS:
            continue
        labels = labels_of_job(job)
        for value in figures_of(job.id, report):
            yield value.family, labels, value.value


def labels_of_job(job: Job) -> dict[str, str]:
    """The labels that series of tasks have of their job."""
    return {
        "username": job.user,
        "job_name": f"{job.user}~{job.summary.name}",
        "job_instance_id": job.id,
        "virtual_cluster": job.terms.queue,
    }
