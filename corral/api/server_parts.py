"""The route that lists the server's own parts. It is for administrators."""

from __future__ import annotations

from fastapi import Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers
from corral.api.routers import router_of
from corral.model.records import Page
from corral.model.server_parts import ServerPart

router = router_of("cluster")


@router.get("/server-parts", responses=answers(Page[ServerPart]))
async def list_server_parts(request: Request, actor: Caller) -> Json:
    """List the server's parts with state and version: front, store, scheduler, engines, agents. For administrators."""
    return Json(await service_of(request).server_parts.page(actor))
