"""The routes of the running shadow: a candidate that goes on beside the policy in force, with a report each hour."""

from __future__ import annotations

from fastapi import Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, read_json
from corral.api.routers import router_of
from corral.model.policy_shadow import RunningShadow, RunningShadowRequest, ShadowReport

router = router_of("cluster")


@router.post(
    "/running-shadow",
    status_code=201,
    responses=answers(RunningShadow, 201, text="It goes on; its reports are at `/running-shadow/report`"),
    openapi_extra=json_body(RunningShadowRequest),
)
async def begin(request: Request, actor: Caller) -> Json:
    """Let a candidate policy go on beside the one in force, with a report each hour; for administrators.

    Nothing is changed. One goes on at a time, for two weeks at most. It goes on after a restart of the server.
    """
    asked: RunningShadowRequest = read_json(await request.body(), RunningShadowRequest)
    return Json(await service_of(request).running_shadows.begin(actor, asked), 201)


@router.get("/running-shadow", responses=answers(RunningShadow))
async def status(request: Request, actor: Caller) -> Json:
    """Say how the running shadow stands, or how the last one ended."""
    return Json(await service_of(request).running_shadows.status(actor))


@router.get("/running-shadow/report", responses=answers(ShadowReport))
async def report(request: Request, actor: Caller) -> Json:
    """Return the last report of the running shadow; that of one that has ended stays until the next one begins."""
    return Json(await service_of(request).running_shadows.report(actor))


@router.post("/running-shadow/stop", responses=answers(RunningShadow))
async def stop(request: Request, actor: Caller) -> Json:
    """Stop the running shadow, and keep its last report."""
    return Json(await service_of(request).running_shadows.stop(actor))
