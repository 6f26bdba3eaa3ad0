"""The route of the report on use."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers
from corral.api.parameters import TIME
from corral.api.routers import router_of
from corral.model.charges import ChargePage
from corral.model.fairness import FairnessReport
from corral.model.usage import UsageReport

router = router_of("cluster")


@router.get("/usage", responses=answers(UsageReport))
async def report_usage(
    request: Request,
    actor: Caller,
    by: Annotated[
        str,
        Query(max_length=50, description="What use is summed by: `user`, `queue`, `job`, `tag`, `node` or `model`."),
    ] = "user",
    begin: Annotated[
        str, Query(alias="from", max_length=50, description=f"{TIME} By default 30 days before the end.")
    ] = "",
    end: Annotated[str, Query(alias="to", max_length=50, description=f"{TIME} By default now.")] = "",
    user: Annotated[str, Query(max_length=200, description="Only the use of this user.")] = "",
    queue: Annotated[str, Query(max_length=200, description="Only jobs of this queue.")] = "",
) -> Json:
    """Say who used how many device-seconds, and how many of them in attempts that came to nothing.

    Administrators are told everybody's use, managers that of their queues, and others their own. Of jobs that were
    removed since whole days in UTC are counted, and they are named by user and queue alone.
    """
    return Json(await service_of(request).usage.report(actor, by=by, begin=begin, end=end, user=user, queue=queue))


@router.get("/usage/charges", responses=answers(ChargePage))
async def list_charges(
    request: Request,
    actor: Caller,
    begin: Annotated[
        str, Query(alias="from", max_length=50, description=f"{TIME} By default 30 days before the end.")
    ] = "",
    end: Annotated[str, Query(alias="to", max_length=50, description=f"{TIME} By default now.")] = "",
    user: Annotated[str, Query(max_length=200, description="Only the use of this user.")] = "",
    queue: Annotated[str, Query(max_length=200, description="Only jobs of this queue.")] = "",
) -> Json:
    """List what users used by day in UTC, queue, device model and meter, with its price and cost.

    An answer holds whole days; `next` is the `from` of the next one. Prices are those of the Prices document `default`.
    """
    return Json(await service_of(request).usage.charges(actor, begin=begin, end=end, user=user, queue=queue))


@router.get("/usage/fairness", responses=answers(FairnessReport))
async def report_fairness(
    request: Request,
    actor: Caller,
    week: Annotated[
        str, Query(max_length=50, description="A week such as 2026-W48; by default the last whole one.")
    ] = "",
    user: Annotated[str, Query(max_length=200, description="Of users and jobs only this user's.")] = "",
) -> Json:
    """Say what the queues at the top of the tree were owed and got in a week, with Jain's index, waits and ratios.

    Owed is the weighted max-min share of the devices that jobs held, hour by hour. `users` and `jobs` have the finish-time
    fairness rho of jobs that succeeded, as Themis defines it. `unknown` says what the records do not tell.
    """
    return Json(await service_of(request).fairness.report(actor, week=week, user=user))
