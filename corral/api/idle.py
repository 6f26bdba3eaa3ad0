"""The routes of jobs that leave their devices idle."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, read_json
from corral.api.routers import router_of
from corral.model.idle.records import IdleJob, IdleList

router = router_of("jobs")


class ExtendBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why the job needs its devices although it does not use them."""

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


@router.get("/idle", responses=answers(IdleList))
async def list_idle_jobs(
    request: Request,
    actor: Caller,
    job: Annotated[str, Query(max_length=200, description="Only the job with this id.")] = "",
) -> Json:
    """List jobs that leave their devices idle, or did within a week, where their owners were warned.

    Administrators see all, those of dry runs too; managers those of their queues; others their own.
    """
    return Json(await service_of(request).idle_jobs.list(actor, job=job))


@router.post(
    "/jobs/{job}/idle/extend", responses=answers(IdleJob, also=(409, 413)), openapi_extra=json_body(ExtendBody)
)
async def extend_idle_job(request: Request, actor: Caller, job: str) -> Json:
    """Give a job whose owner was warned of idle devices more time: as long as they may be idle before a warning, once."""
    asked: ExtendBody = read_json(await request.body(), ExtendBody)
    return Json(await service_of(request).idle_jobs.extend(actor, job, asked.reason))
