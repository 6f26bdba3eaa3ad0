"""OpenPAI's routes that show nodes and tasks as Kubernetes lists."""

from __future__ import annotations

from fastapi import APIRouter, Request

from corral.api.authentication import service_of
from corral.api.json_responses import Json
from corral.api.openpai.callers import AnyCaller

router = APIRouter()


@router.get("/kubernetes/nodes")
async def list_nodes(request: Request, actor: AnyCaller) -> Json:
    """Return the nodes as a NodeList."""
    return Json(await service_of(request).kubernetes_nodes(actor))


@router.get("/kubernetes/pods")
async def list_pods(request: Request, actor: AnyCaller) -> Json:
    """Return the tasks as a PodList, of one `namespace` or of all."""
    return Json(await service_of(request).kubernetes_pods(actor, request.query_params.get("namespace", "")))
