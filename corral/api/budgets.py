"""Routes for budgets of device-hours."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.routers import router_of
from corral.model.budgets import MOST_HOURS, BudgetList, BudgetView, WhenUsedUp

router = router_of("cluster")

_Kind = Annotated[str, Path(pattern="^(queue|user)$", description="Whose budget it is: `queue` or `user`.")]
_Name = Annotated[str, Path(max_length=200, description="The name of the queue or user.")]
_Window = Annotated[
    str,
    Path(
        pattern="^(day|week|month)$", description="How long it lasts: `day`, `week` (from Monday) or `month`, in UTC."
    ),
]
_Hours = Annotated[float, msgspec.Meta(gt=0, le=MOST_HOURS)]


class BudgetBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A budget of device-hours."""

    device_hours: _Hours
    warn_at: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.8
    """The part of it from which submissions are warned."""
    when_used_up: WhenUsedUp = WhenUsedUp.WARN
    """What becomes of jobs that run while it is used up: `warn` their owners, or `hold` them."""


class TopUpBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Device-hours to add to a budget for its present window."""

    device_hours: _Hours
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


@router.get("/budgets", responses=answers(BudgetList))
async def list_budgets(request: Request, actor: Caller) -> Json:
    """List how the budgets of all queues and the caller's own stand; administrators see those of all users."""
    return Json(await service_of(request).budgets.list(actor))


@router.put(
    "/budgets/{kind}/{name}/{window}", responses=answers(BudgetView, also=(413,)), openapi_extra=json_body(BudgetBody)
)
async def set_budget(request: Request, actor: Caller, kind: _Kind, name: _Name, window: _Window) -> Json:
    """Set the device-hours that a queue or user may use in each day, week or month. For administrators."""
    asked: BudgetBody = read_json(await request.body(), BudgetBody)
    found = await service_of(request).budgets.set(
        actor, kind, name, window, asked.device_hours, warn_at=asked.warn_at, when_used_up=asked.when_used_up
    )
    return Json(found)


@router.post(
    "/budgets/{kind}/{name}/{window}/top-ups",
    responses=answers(BudgetView, also=(413,)),
    openapi_extra=json_body(TopUpBody),
)
async def top_up_budget(request: Request, actor: Caller, kind: _Kind, name: _Name, window: _Window) -> Json:
    """Add device-hours to a budget until its present window ends, with the reason. For administrators."""
    asked: TopUpBody = read_json(await request.body(), TopUpBody)
    found = await service_of(request).budgets.top_up(actor, kind, name, window, asked.device_hours, reason=asked.reason)
    return Json(found)


@router.delete("/budgets/{kind}/{name}/{window}", status_code=204, responses=answers(None, 204))
async def remove_budget(request: Request, actor: Caller, kind: _Kind, name: _Name, window: _Window) -> Json:
    """Remove a budget. For administrators."""
    await service_of(request).budgets.remove(actor, kind, name, window)
    return no_content()
