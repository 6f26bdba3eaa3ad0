"""The route of the series of metrics."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers
from corral.api.routers import router_of
from corral.model.series import SeriesAnswer

router = router_of("cluster")

_TIME = "A time such as 2026-11-27T10:00:00Z, or a day in UTC."
_Text = Annotated[str, Query(max_length=200)]


@router.get("/series", responses=answers(SeriesAnswer))
async def read_series(
    request: Request,
    actor: Caller,
    family: Annotated[
        list[_Text], Query(max_length=20, description="Metrics by name; with a job, none are all that it has.")
    ] = [],  # noqa: B006
    job: Annotated[str, Query(max_length=200, description="Only series of this job.")] = "",
    label: Annotated[
        list[_Text],
        Query(max_length=20, description="Only series with this label: `NAME=VALUE`, such as `queue=vision`."),
    ] = [],  # noqa: B006
    begin: Annotated[
        str, Query(alias="from", max_length=50, description=f"{_TIME} By default an hour before the end.")
    ] = "",
    end: Annotated[str, Query(alias="to", max_length=50, description=f"{_TIME} By default now.")] = "",
    step: Annotated[
        str,
        Query(max_length=20, description="A multiple of 15 s, such as `60s` or `10m`; by default at most 300 steps."),
    ] = "",
) -> Json:
    """Read the values of metrics over time: the mean, the least and the greatest value of each step.

    The last day is kept in steps of 15 s, and 90 days in steps of 10 min. An answer has at most 100 series and 1,500 steps.
    A job's series are told to its owner, the managers of its queue and administrators; the series of queues to everybody;
    those that name machines to administrators.
    """
    return Json(
        await service_of(request).series.report(actor, family, job=job, labels=label, begin=begin, end=end, step=step)
    )
