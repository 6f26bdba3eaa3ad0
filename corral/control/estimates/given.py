"""The estimates that played courses and forecasts give: for each waiting job the quantiles of its start."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from corral.control.core.world import World
from corral.control.forecast.forecasts import Forecast
from corral.kernel.ids import JobId
from corral.model.estimates import GivenEstimate
from corral.model.what_if import LONGEST_HORIZON, Courses, quantiles


def given_in(courses: Courses, horizon: float) -> Iterator[GivenEstimate]:
    """The estimates of the jobs that wait, from the courses without changes; `horizon` is in seconds."""
    for job in courses.jobs:
        if job.added or not courses.before:
            continue
        raw = quantiles(job.id, courses.before)
        told = quantiles(job.id, courses.before, courses.correction)
        count, revision = len(courses.before), courses.revision
        yield GivenEstimate(job.id, job.queue, courses.at, revision, horizon, count, *told, raw)


def given_by(forecast: Forecast, world: World, wanted: Callable[[str, float], bool]) -> Iterator[GivenEstimate]:
    """The estimates of a forecast that explanations and the waiting list hand out, of the `wanted` jobs that are there."""
    mark = forecast.mark
    for name, found, raw in forecast.given(wanted):
        job = world.jobs.get(JobId(name))
        if job is not None:
            told = forecast.seconds(found)
            queue = job.terms.queue
            yield GivenEstimate(name, queue, mark.at, mark.revision, LONGEST_HORIZON, mark.seeds, *told, raw)
