"""Why: the runtime in a task asks who its peers are and reports what it saw, with a token good for nothing else."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from corral.api.callers import Caller, service_of
from corral.api.wire import Json, answers, no_content, read_json
from corral.model.views import PeersView

router = APIRouter(prefix="/runtime", tags=["runtime"])


@router.get("/peers", responses=answers(PeersView))
async def peers(
    request: Request,
    actor: Caller,
    attempt: Annotated[str, Query(max_length=200, description="The asking task's own attempt id.")] = "",
) -> Json:
    """The started tasks of the same job attempt, and whether all have started."""
    return Json(await service_of(request).peers(actor, attempt=attempt))


@router.post(
    "/report",
    status_code=204,
    responses=answers(None, 204),
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}},
)
async def report(request: Request, actor: Caller) -> Json:
    """What the runtime saw: stages passed, the exit pattern that matched."""
    body: dict[str, Any] = read_json(await request.body(), dict[str, Any])
    await service_of(request).report(actor, body)
    return no_content()
