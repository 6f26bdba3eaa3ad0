"""Routes to suspend jobs, cordon and drain nodes, and read the receipts of jobs that yielded."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from fastapi import Path, Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.parameters import TIME, After, Limit, Name, Ref
from corral.api.routers import router_of
from corral.model.cordons import CordonView
from corral.model.receipts import LedgerView, ReceiptView
from corral.model.records import Page
from corral.model.views import JobDetail
from corral.service.times import read_time

router = router_of("yielding")

_PART: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,125}$"
Engine = Annotated[str, Path(pattern=_PART, description="The engine that has the node.")]
Node = Annotated[str, Path(pattern=_PART, description="The node's name within its engine.")]
Since = Annotated[str, Query(max_length=50, description=f"Only what yielded at or after this time. {TIME}")]
Why = Annotated[str, msgspec.Meta(max_length=500)]


class CordonBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reason for a cordon."""

    why: Why = ""


class DrainBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The options of a drain: `afterJobs` waits for the node's jobs to end by themselves."""

    why: Why = ""
    grace_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] | None = None
    after_jobs: bool = False


class ResumeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The queue in which the job goes on; "" is its own."""

    queue: Annotated[str, msgspec.Meta(max_length=200)] = ""


@router.post("/jobs/{ref}/suspend", status_code=202, responses=answers(JobDetail, 202, also=(409,)))
async def suspend(request: Request, actor: Caller, ref: Ref) -> Json:
    """Suspend the job: end its tasks with the checkpoint signal and hold it; it keeps its place in the queue."""
    return Json(await service_of(request).job_commands.suspend(actor, ref), 202)


@router.post(
    "/jobs/{ref}/resume",
    status_code=202,
    responses=answers(JobDetail, 202, also=(409, 413)),
    openapi_extra=json_body(ResumeBody),
)
async def resume(request: Request, actor: Caller, ref: Ref) -> Json:
    """Resume a suspended job, in its old place or in another queue."""
    asked: ResumeBody = read_json(await request.body() or b"{}", ResumeBody)
    if asked.queue:
        await service_of(request).job_editor.edit(actor, ref, queue=asked.queue)
    return Json(await service_of(request).job_commands.resume(actor, ref), 202)


@router.get("/jobs/{ref}/receipts", responses=answers(Page[ReceiptView]))
async def job_receipts(request: Request, actor: Caller, ref: Ref, limit: Limit = 100, after: After = "") -> Json:
    """List the job's receipts, one per time it yielded: to which job, by which rule, at which cost, and its return."""
    return Json(await service_of(request).receipts.of_job(actor, ref, limit=limit, after=after))


@router.get("/receipts", responses=answers(Page[ReceiptView]))
async def list_receipts(
    request: Request,
    actor: Caller,
    queue: Annotated[str, Query(max_length=200, description="Only where this queue yielded or was yielded to.")] = "",
    since: Since = "",
    limit: Limit = 100,
    after: After = "",
) -> Json:
    """List the receipts of all jobs, newest first."""
    begin = read_time("since", since) if since else None
    found = await service_of(request).receipts.page(actor, queue=queue, since=begin, limit=limit, after=after)
    return Json(found)


@router.get("/queues/{name}/ledger", responses=answers(LedgerView))
async def get_ledger(request: Request, actor: Caller, name: Name) -> Json:
    """Return the device-seconds that the queue has lent to and borrowed from each other queue."""
    return Json(await service_of(request).receipts.ledger(actor, name))


@router.post(
    "/nodes/{engine}/{node}/cordon", responses=answers(CordonView, also=(413,)), openapi_extra=json_body(CordonBody)
)
async def cordon(request: Request, actor: Caller, engine: Engine, node: Node) -> Json:
    """Close a node to new tasks; running tasks continue. For administrators."""
    asked: CordonBody = read_json(await request.body() or b"{}", CordonBody)
    return Json(await service_of(request).cordons.cordon(actor, f"{engine}/{node}", why=asked.why))


@router.post("/nodes/{engine}/{node}/uncordon", status_code=204, responses=answers(None, 204, also=(409,)))
async def uncordon(request: Request, actor: Caller, engine: Engine, node: Node) -> Json:
    """Open a node to new tasks again. For administrators."""
    await service_of(request).cordons.uncordon(actor, f"{engine}/{node}")
    return no_content()


@router.post(
    "/nodes/{engine}/{node}/drain",
    status_code=202,
    responses=answers(CordonView, 202, also=(413,)),
    openapi_extra=json_body(DrainBody),
)
async def drain(request: Request, actor: Caller, engine: Engine, node: Node) -> Json:
    """Close a node, and move its tasks elsewhere or let them end by themselves first. For administrators."""
    asked: DrainBody = read_json(await request.body() or b"{}", DrainBody)
    found = await service_of(request).cordons.drain(
        actor, f"{engine}/{node}", why=asked.why, grace_seconds=asked.grace_seconds, after_jobs=asked.after_jobs
    )
    return Json(found, 202)
