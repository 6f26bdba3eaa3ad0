"""The route of what-if questions."""

from __future__ import annotations

from fastapi import APIRouter, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, read_json
from corral.model.what_if import WhatIfAnswer, WhatIfRequest

router = APIRouter(tags=["cluster"])


@router.post("/what-if", responses=answers(WhatIfAnswer, also=(409,)), openapi_extra=json_body(WhatIfRequest))
async def what_if(request: Request, actor: Caller) -> Json:
    """Say what is to be expected as things are, and with changes: waits of queues, starts of jobs, devices in use.

    The scheduler itself plays it on copies of the present state; nothing is changed.
    """
    asked: WhatIfRequest = read_json(await request.body(), WhatIfRequest)
    return Json(await service_of(request).what_if.ask(actor, asked))
