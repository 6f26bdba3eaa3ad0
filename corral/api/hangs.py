"""The routes of jobs that hung."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Request
from starlette.responses import Response

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers
from corral.api.routers import router_of
from corral.model.hangs.records import HangList
from corral.model.hangs.scores import RankScores

router = router_of("jobs")
_BINARY: Final = {"content": {"application/gzip": {"schema": {"type": "string", "format": "binary"}}}}
_FILE: Final = {status: shown for status, shown in answers(None).items() if status not in (200, 204)} | {
    200: {"description": "A tar.gz archive", **_BINARY},
}
_Name = Annotated[str, Path(max_length=64, description="The name of the bundle, which the list of hangs has.")]


@router.get("/jobs/{job}/hangs", responses=answers(HangList))
async def list_hangs(request: Request, actor: Caller, job: str) -> Json:
    """List the times that a job showed no progress any more: which task was odd, and what was done; the latest first."""
    return Json(await service_of(request).job_hangs.of_job(actor, job))


@router.get("/jobs/{job}/ranks", responses=answers(RankScores))
async def list_ranks(request: Request, actor: Caller, job: str) -> Json:
    """List how fast the tasks of a running job make steps now, beside each other, the slowest first."""
    return Json(await service_of(request).job_hangs.ranks(actor, job))


@router.get("/jobs/{job}/hangs/{bundle}", response_class=Response, responses=_FILE)
async def read_hang_bundle(request: Request, actor: Caller, job: str, bundle: _Name) -> Response:
    """Return the stacks, the ends of logs, the flight recorders' dumps and the figures of all tasks at that time.

    They can hold secrets: they are for those who may enter the job's tasks, and each read is in the audit log.
    """
    data = await service_of(request).job_hangs.bundle(actor, job, bundle)
    return Response(data, media_type="application/gzip")
