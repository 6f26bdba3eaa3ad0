"""Why: OpenPAI's portal shows what is wrong; administrators see all of it, others what is about their own jobs."""

from __future__ import annotations

from fastapi import APIRouter, Request

from corral.api.callers import service_of
from corral.api.openpai.callers import AnyCaller
from corral.api.wire import Json

router = APIRouter()


@router.get("/alerts")
async def list_alerts(request: Request, actor: AnyCaller) -> Json:
    """The alerts that fire now, as Alertmanager tells of them."""
    return Json(await service_of(request).alerts(actor))
