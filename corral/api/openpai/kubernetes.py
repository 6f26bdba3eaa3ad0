"""Why: OpenPAI's administrators read the machines and tasks as Kubernetes' own lists."""

from __future__ import annotations

from fastapi import APIRouter, Request

from corral.api.callers import service_of
from corral.api.openpai.callers import AnyCaller
from corral.api.wire import Json

router = APIRouter()


@router.get("/kubernetes/nodes")
async def list_nodes(request: Request, actor: AnyCaller) -> Json:
    """A NodeList."""
    return Json(await service_of(request).kubernetes_nodes(actor))


@router.get("/kubernetes/pods")
async def list_pods(request: Request, actor: AnyCaller) -> Json:
    """A PodList, of one `namespace` or of all."""
    return Json(await service_of(request).kubernetes_pods(actor, request.query_params.get("namespace", "")))
