"""The estimates that a set of played courses gives: for each waiting job the quantiles of its start."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from corral.model.estimates import GivenEstimate
from corral.model.what_if import Courses
from corral.service.what_if.comparison import quantile


def given_in(courses: Courses, horizon: float) -> Iterator[GivenEstimate]:
    """The estimates of the jobs that wait, from the courses without changes; `horizon` is in seconds."""
    for job in courses.jobs:
        if job.added or not courses.before:
            continue
        starts = sorted(course.starts.get(job.id, inf) for course in courses.before)
        p10, p50, p90 = (_told(quantile(starts, part)) for part in (0.1, 0.5, 0.9))
        yield GivenEstimate(job.id, job.queue, courses.at, str(courses.cursor), horizon, len(starts), p10, p50, p90)


def _told(start: float) -> float | None:
    return None if start == inf else start
