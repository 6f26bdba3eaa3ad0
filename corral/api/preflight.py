"""The route of what the tasks of a job checked before their commands began."""

from __future__ import annotations

from fastapi import Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers
from corral.api.routers import router_of
from corral.model.preflight.report import PreflightReport

router = router_of("jobs")


@router.get("/jobs/{job}/preflight", responses=answers(PreflightReport))
async def read_preflight(request: Request, actor: Caller, job: str) -> Json:
    """Read what the tasks of a job checked before their commands began, and what is slower than the topology promises."""
    return Json(await service_of(request).preflights.of_job(actor, job))
