"""The estimates that a set of played courses gives: for each waiting job the quantiles of its start."""

from __future__ import annotations

from collections.abc import Iterator

from corral.model.estimates import GivenEstimate
from corral.model.what_if import Courses
from corral.service.what_if.comparison import quantiles


def given_in(courses: Courses, horizon: float) -> Iterator[GivenEstimate]:
    """The estimates of the jobs that wait, from the courses without changes; `horizon` is in seconds."""
    for job in courses.jobs:
        if job.added or not courses.before:
            continue
        raw = quantiles(job.id, courses.before)
        told = quantiles(job.id, courses.before, courses.correction)
        revision = str(courses.cursor)
        yield GivenEstimate(job.id, job.queue, courses.at, revision, horizon, len(courses.before), *told, raw)
