"""A keeper of forecasts for tests in which nobody asks for one."""

from __future__ import annotations

from typing import NoReturn

from corral.control.forecast.forecasts import Forecasts
from corral.model.records import JobFilter, JobSummary, Page


class NoJobs:
    """A store without jobs."""

    async def list_jobs(self, wanted: JobFilter, *, limit: int = 50, after_cursor: str = "") -> Page[JobSummary]:
        return Page([])


def no_forecasts() -> Forecasts:
    """Forecasts that fail as soon as somebody asks."""
    return Forecasts(NoJobs(), _not_asked, _not_asked, _not_asked)


def _not_asked() -> NoReturn:
    raise AssertionError("nothing waits, so nobody asks for a forecast")
