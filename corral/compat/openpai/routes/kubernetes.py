"""OpenPAI's routes that show nodes and tasks as Kubernetes lists."""

from __future__ import annotations

from fastapi import Request

from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.compat.openpai.routes.callers import AnyCaller
from corral.compat.openpai.routes.operations import openpai_of

router = late_router()


@router.get("/kubernetes/nodes")
async def list_nodes(request: Request, actor: AnyCaller) -> Json:
    """Return the nodes as a NodeList."""
    return Json(await openpai_of(request).kubernetes_lists.nodes(actor))


@router.get("/kubernetes/pods")
async def list_pods(request: Request, actor: AnyCaller) -> Json:
    """Return the tasks as a PodList, of one `namespace` or of all."""
    return Json(await openpai_of(request).kubernetes_lists.pods(actor, request.query_params.get("namespace", "")))
