"""The alerts of OpenPAI's portal: all for administrators, those of their own jobs for others."""

from __future__ import annotations

from fastapi import APIRouter, Request

from corral.api.authentication import service_of
from corral.api.json_responses import Json
from corral.api.openpai.callers import AnyCaller

router = APIRouter()


@router.get("/alerts")
async def list_alerts(request: Request, actor: AnyCaller) -> Json:
    """List the firing alerts, in Alertmanager's format."""
    return Json(await service_of(request).alerts(actor))
