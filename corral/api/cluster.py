"""Why: what there is to run on is asked for by people, pages and programs alike: nodes, devices, cells and queues."""

from __future__ import annotations

from fastapi import APIRouter, Request

from corral.api.bounds import After, Limit, NodeName
from corral.api.callers import Caller, service_of
from corral.api.wire import Json, answers
from corral.model.records import Page
from corral.model.views import CellView, DeviceView, NodeView, QueueView, Top

router = APIRouter(tags=["cluster"])


@router.get("/nodes", responses=answers(Page[NodeView]))
async def list_nodes(request: Request, actor: Caller, limit: Limit = 200, after: After = "") -> Json:
    """The machines, with their devices and who holds them."""
    return Json(await service_of(request).nodes(actor, limit=limit, after=after))


@router.get("/nodes/{name:path}", responses=answers(NodeView))
async def get_node(request: Request, actor: Caller, name: NodeName) -> Json:
    """One machine."""
    return Json(await service_of(request).node(actor, name))


@router.get("/devices", responses=answers(Page[DeviceView]))
async def list_devices(request: Request, actor: Caller, limit: Limit = 200, after: After = "") -> Json:
    """Every accelerator, with the cells it is in and who holds it."""
    return Json(await service_of(request).devices(actor, limit=limit, after=after))


@router.get("/cluster", responses=answers(CellView))
async def get_cluster(request: Request, actor: Caller) -> Json:
    """The tree of cells: engine, rack, node, down to the device."""
    return Json(await service_of(request).cluster(actor))


@router.get("/queues", responses=answers(Page[QueueView]))
async def list_queues(request: Request, actor: Caller, limit: Limit = 200, after: After = "") -> Json:
    """The queues and what stands in them."""
    return Json(await service_of(request).queues(actor, limit=limit, after=after))


@router.get("/top", responses=answers(Top))
async def top(request: Request, actor: Caller) -> Json:
    """Totals, and the jobs that run with what they hold."""
    return Json(await service_of(request).top(actor))
