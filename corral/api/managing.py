"""What the managers of a queue do: put its waiting jobs in another order, and limit what its members hold."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request

from corral.api.bounds import Ref
from corral.api.callers import Caller, service_of
from corral.api.wire import Json, answers, json_body, read_json
from corral.model.views import JobDetail
from corral.service.managing import QueueLimits

router = APIRouter(tags=["queues"])
_QUEUE: Final = r"^[a-z0-9A-Z][A-Za-z0-9._-]{0,62}$"
Queue = Annotated[str, Path(pattern=_QUEUE, description="A queue.")]


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a waiting job goes in its queue."""

    place: Literal["first", "last", "before", "own"]
    before: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """With `before`: the other job."""


@router.post(
    "/jobs/{ref}/order", status_code=202, responses=answers(JobDetail, 202, also=(409,)), openapi_extra=json_body(Place)
)
async def order_job(request: Request, actor: Caller, ref: Ref) -> Json:
    """Put a waiting job elsewhere in its queue; for managers of the queue."""
    asked: Place = read_json(await request.body(), Place)
    return Json(await service_of(request).order(actor, ref, asked.place, asked.before), 202)


@router.get("/queues/{name}/limits", responses=answers(QueueLimits))
async def queue_limits(request: Request, actor: Caller, name: Queue) -> Json:
    """What managers of a queue let its members hold, below the queue's own limits."""
    return Json(await service_of(request).queue_limits(actor, name))


@router.put("/queues/{name}/limits", responses=answers(QueueLimits, also=(409,)), openapi_extra=json_body(QueueLimits))
async def limit_queue(
    request: Request,
    actor: Caller,
    name: Queue,
    dry_run: Annotated[bool, Query(alias="dryRun", description="Only say whether it could be.")] = False,
) -> Json:
    """Set what the members of a queue may hold, below its own limits; for managers of the queue."""
    asked: QueueLimits = read_json(await request.body(), QueueLimits)
    return Json(await service_of(request).limit_queue(actor, name, asked, dry_run=dry_run))
