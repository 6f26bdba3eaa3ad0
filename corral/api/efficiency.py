"""The routes of reports on what jobs asked for and used."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers
from corral.api.routers import router_of
from corral.model.efficiency.records import EfficiencyReport, JobEfficiency

router = router_of("cluster")

_TIME = "A time such as 2026-11-27T10:00:00Z, or a day in UTC."


@router.get("/efficiency", responses=answers(EfficiencyReport))
async def report_efficiency(
    request: Request,
    actor: Caller,
    user: Annotated[str, Query(max_length=200, description="Only the jobs of this user.")] = "",
    queue: Annotated[str, Query(max_length=200, description="Only jobs of this queue.")] = "",
    begin: Annotated[
        str, Query(alias="from", max_length=50, description=f"{_TIME} By default a week before the end.")
    ] = "",
    end: Annotated[str, Query(alias="to", max_length=50, description=f"{_TIME} By default now.")] = "",
) -> Json:
    """Say what jobs asked for and what they used: devices, their memory, processors, memory and time.

    The figures of the 100 jobs with the most device-seconds are read; sums of device-seconds count all jobs.
    Administrators are told of everybody's jobs, managers of those in their queues, and others of their own.
    """
    return Json(await service_of(request).efficiency.report(actor, user=user, queue=queue, begin=begin, end=end))


@router.get("/jobs/{job}/efficiency", responses=answers(JobEfficiency))
async def job_efficiency(request: Request, actor: Caller, job: str) -> Json:
    """Say what a job asked for and what it used since it first ran, in numbers and sentences.

    It is told to the job's owner, the managers of its queue and administrators. A job without figures says so.
    """
    return Json(await service_of(request).efficiency.of_job(actor, job))
