"""Routes for queue managers: reorder the waiting jobs of a queue, and limit the use of its members."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from fastapi import Path, Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, read_json
from corral.api.parameters import Ref
from corral.api.routers import router_of
from corral.model.views import JobDetail
from corral.service.configuration.queue_managers import QueueLimits

router = router_of("queues")
_QUEUE: Final = r"^[a-z0-9A-Z][A-Za-z0-9._-]{0,62}$"
Queue = Annotated[str, Path(pattern=_QUEUE, description="A queue.")]


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new position of a waiting job in its queue."""

    place: Literal["first", "last", "before", "own"]
    before: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """The other job, for the place `before`."""


@router.post(
    "/jobs/{ref}/order", status_code=202, responses=answers(JobDetail, 202, also=(409,)), openapi_extra=json_body(Place)
)
async def order_job(request: Request, actor: Caller, ref: Ref) -> Json:
    """Move a waiting job within its queue; for managers of the queue."""
    asked: Place = read_json(await request.body(), Place)
    return Json(await service_of(request).queue_managers.order(actor, ref, asked.place, asked.before), 202)


@router.get("/queues/{name}/limits", responses=answers(QueueLimits))
async def queue_limits(request: Request, actor: Caller, name: Queue) -> Json:
    """Return the limits that a queue's managers set on its use, below the queue's own limits."""
    return Json(await service_of(request).queue_managers.limits(actor, name))


@router.put("/queues/{name}/limits", responses=answers(QueueLimits, also=(409,)), openapi_extra=json_body(QueueLimits))
async def limit_queue(
    request: Request,
    actor: Caller,
    name: Queue,
    dry_run: Annotated[bool, Query(alias="dryRun", description="Only check whether it would be accepted.")] = False,
) -> Json:
    """Limit the use of a queue, below the queue's own limits; for managers of the queue."""
    asked: QueueLimits = read_json(await request.body(), QueueLimits)
    return Json(await service_of(request).queue_managers.set_limits(actor, name, asked, dry_run=dry_run))
