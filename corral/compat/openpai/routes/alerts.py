"""The alerts of OpenPAI's portal: all for administrators, those of their own jobs for others."""

from __future__ import annotations

from fastapi import Request

from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.compat.openpai.routes.callers import AnyCaller
from corral.compat.openpai.routes.operations import openpai_of

router = late_router()


@router.get("/alerts")
async def list_alerts(request: Request, actor: AnyCaller) -> Json:
    """List the firing alerts, in Alertmanager's format."""
    return Json(await openpai_of(request).kubernetes_lists.alerts(actor))
