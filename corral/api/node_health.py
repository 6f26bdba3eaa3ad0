"""Routes for the health of nodes: scores, history, what administrators do, and the events of health monitors."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from fastapi import Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, read_json
from corral.api.parameters import After, Limit
from corral.api.routers import router_of
from corral.api.suspend_and_drain import Engine, Node, Why
from corral.kernel.errors import TooLarge
from corral.model.health.nvsentinel import MOST_BYTES, HealthEvents, HealthEventsTaken
from corral.model.health.records import HealthEntryView, HealthView
from corral.model.records import Page, one_of
from corral.service.machines.node_health import ACTS

router = router_of("health of nodes")
_ACTS: Final = tuple(ACTS)


class HealthBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is done with a node: `repairing` takes it over, `validate` has it checked, `healthy` ends the suspicion."""

    act: Annotated[str, msgspec.Meta(max_length=50), one_of(*_ACTS)]
    why: Why = ""


@router.get("/node-health", responses=answers(Page[HealthView]))
async def list_health(request: Request, actor: Caller) -> Json:
    """List the nodes with signs of trouble, the worst first; a node that is not listed is healthy."""
    return Json(await service_of(request).nodes_health.page(actor))


@router.get("/nodes/{engine}/{node}/health", responses=answers(Page[HealthEntryView]))
async def get_history(
    request: Request, actor: Caller, engine: Engine, node: Node, limit: Limit = 100, after: After = ""
) -> Json:
    """Return the signs of trouble of a node and its moves between states, newest first."""
    found = await service_of(request).nodes_health.history(actor, f"{engine}/{node}", limit=limit, after=after)
    return Json(found)


@router.post(
    "/nodes/{engine}/{node}/health",
    responses=answers(HealthView, also=(409, 413)),
    openapi_extra=json_body(HealthBody),
)
async def act_on_health(request: Request, actor: Caller, engine: Engine, node: Node) -> Json:
    """Move a node to another state of health. For administrators."""
    asked: HealthBody = read_json(await request.body(), HealthBody)
    found = await service_of(request).nodes_health.act(actor, f"{engine}/{node}", asked.act, why=asked.why)
    return Json(found)


@router.post(
    "/health-events",
    status_code=202,
    responses=answers(HealthEventsTaken, 202, also=(409, 413)),
    openapi_extra=json_body(HealthEvents),
)
async def take_health_events(request: Request, actor: Caller) -> Json:
    """Take health events of NVSentinel as JSON; each fault is a sign of its node. For administrators.

    A single event is taken as well.
    """
    body = await request.body()
    if len(body) > MOST_BYTES:
        raise TooLarge("too-many-events", f"Health events have at most {MOST_BYTES} bytes in one call.")
    service = service_of(request)
    return Json(await service.nodes_health.events(actor, body), 202)
