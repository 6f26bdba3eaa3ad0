"""The route of the report on estimates."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers
from corral.api.routers import router_of
from corral.model.estimates import EstimateReport

router = router_of("cluster")


@router.get("/estimates", responses=answers(EstimateReport))
async def list_estimates(
    request: Request,
    actor: Caller,
    queue: Annotated[str, Query(max_length=200, description="Only this queue.")] = "",
    days: Annotated[int, Query(description="How far to look back: 7 or 30 days.")] = 7,
) -> Json:
    """Say how good the estimates of starts were that were given: how many intervals held, their width, bias and error.

    Administrators are told of all queues, others of those that they may use.
    """
    return Json(await service_of(request).estimates.report(actor, queue=queue, days=days))
