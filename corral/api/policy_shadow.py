"""The routes of comparisons of a candidate policy with the one in force: answered later, with their progress as events."""

from __future__ import annotations

from fastapi import Request

from corral.api.authentication import Caller, service_of
from corral.api.held_stream import HeldStream
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.question_events import EVENTS, Number, question_events
from corral.api.routers import router_of
from corral.api.stream_limits import HoldsEvents
from corral.model.policy_shadow import ShadowComparisons, ShadowRequest, ShadowStatus

router = router_of("cluster")


@router.post(
    "/policy-shadow",
    status_code=202,
    responses=answers(ShadowStatus, 202, text="It is being compared; `Location` has the report later"),
    openapi_extra=json_body(ShadowRequest),
)
async def compare(request: Request, actor: Caller) -> Json:
    """Let a candidate policy decide beside the one in force, on the inputs of the server's journal; for administrators.

    Nothing is changed. A process of its own reads the journal, with bounded memory, for ten minutes at most.
    """
    asked: ShadowRequest = read_json(await request.body(), ShadowRequest)
    started = await service_of(request).policy_shadows.start(actor, asked)
    return Json(started, 202, {"Location": f"/api/v3/policy-shadow/{started.id}"})


@router.get("/policy-shadow", responses=answers(ShadowComparisons))
async def comparisons(request: Request, actor: Caller) -> Json:
    """List the caller's own comparisons: those that run, and the last ones with a report."""
    return Json(await service_of(request).policy_shadows.of_user(actor))


@router.get("/policy-shadow/{question}", responses=answers(ShadowStatus))
async def comparison(request: Request, actor: Caller, question: Number) -> Json:
    """Say how far a comparison is; once it is done with its report, once it has failed with the reason.

    It is kept for ten minutes after its end, and ends with the sign-in that asked for it.
    """
    return Json(await service_of(request).policy_shadows.status(actor, question))


@router.delete("/policy-shadow/{question}", responses=answers(None, 204, text="It is cancelled"))
async def cancel(request: Request, actor: Caller, question: Number) -> Json:
    """Cancel a comparison: its process ends, and its report is forgotten."""
    await service_of(request).policy_shadows.cancel(actor, question)
    return no_content()


@router.get("/policy-shadow/{question}/events", dependencies=[HoldsEvents], responses=EVENTS)
async def progress(request: Request, actor: Caller, question: Number) -> HeldStream:
    """Stream the states of a comparison, without its report; the first one comes at once, and the stream ends with it."""
    return question_events(request, actor, await service_of(request).policy_shadows.follow(actor, question))
