"""Routes that show nodes, devices, cells, queues and waiting jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers
from corral.api.parameters import After, Limit, Name, NodeName
from corral.api.routers import router_of
from corral.model.cluster_use import ClusterUse
from corral.model.device_timeline import MOST_TIMELINE_NODES, DeviceTimeline
from corral.model.queue_history import MOST_WEEKS, QueueHistory
from corral.model.queue_views import CellTree, QueueView, WaitingLine
from corral.model.records import EventRecord, Page
from corral.model.views import CellView, DeviceView, NodeView, Top

router = router_of("cluster")

_TIME = "A time such as 2026-11-27T10:00:00Z, or a day in UTC."


@router.get("/nodes", responses=answers(Page[NodeView]))
async def list_nodes(request: Request, actor: Caller, limit: Limit = 200, after: After = "") -> Json:
    """List the nodes, with their devices and the jobs that hold them."""
    return Json(await service_of(request).nodes.page(actor, limit=limit, after=after))


@router.get("/nodes/{name:path}", responses=answers(NodeView))
async def get_node(request: Request, actor: Caller, name: NodeName) -> Json:
    """Return one node."""
    return Json(await service_of(request).nodes.get(actor, name))


@router.get("/devices", responses=answers(Page[DeviceView]))
async def list_devices(request: Request, actor: Caller, limit: Limit = 200, after: After = "") -> Json:
    """List every device, with the cells that contain it and the job that holds it."""
    return Json(await service_of(request).nodes.devices(actor, limit=limit, after=after))


@router.get("/devices/timeline", responses=answers(DeviceTimeline))
async def get_device_timeline(
    request: Request,
    actor: Caller,
    node: Annotated[str, Query(max_length=253, description="Only this node: ENGINE/NODE.")] = "",
    begin: Annotated[str, Query(alias="from", max_length=50, description=f"{_TIME} By default a day before now.")] = "",
    end: Annotated[
        str, Query(alias="to", max_length=50, description=f"{_TIME} By default two days after its begin.")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_TIMELINE_NODES, description="How many nodes to answer with.")] = 20,
    after: After = "",
) -> Json:
    """Say which jobs were on the devices of nodes, and which are expected to be, for at most 48 hours.

    The past are the attempts of tasks; those of removed jobs are not known. What is expected is the first course of the
    forecast, which looks a day ahead. An answer has at most 2,000 stays of each, and says how many it left out.
    """
    found = await service_of(request).device_timelines.show(
        actor, node=node, begin=begin, end=end, limit=limit, after=after
    )
    return Json(found)


@router.get("/cluster", responses=answers(CellView))
async def get_cluster(request: Request, actor: Caller) -> Json:
    """Return the tree of cells: engine, rack, node, down to the device."""
    return Json(await service_of(request).nodes.cluster(actor))


@router.get("/cluster/use", responses=answers(Page[ClusterUse]))
async def get_cluster_use(request: Request, actor: Caller) -> Json:
    """List the queues and applications of clusters that Corral shares with others, such as YARN's."""
    return Json(await service_of(request).nodes.use(actor))


@router.get("/queues", responses=answers(Page[QueueView]))
async def list_queues(request: Request, actor: Caller, limit: Limit = 200, after: After = "") -> Json:
    """List the queues in tree order: the share, use, borrowing, lending and number of waiting jobs of each."""
    return Json(await service_of(request).queues.page(actor, limit=limit, after=after))


@router.get("/queues/{name}", responses=answers(QueueView))
async def get_queue(request: Request, actor: Caller, name: Name) -> Json:
    """Return one queue."""
    return Json(await service_of(request).queues.get(actor, name))


@router.get("/queues/{name}/history", responses=answers(QueueHistory))
async def get_queue_history(
    request: Request,
    actor: Caller,
    name: Name,
    weeks: Annotated[int, Query(ge=1, le=MOST_WEEKS, description="How many weeks, with the present one.")] = 8,
) -> Json:
    """Say by week how long the jobs of a queue waited, what they held, and what the queue lent and borrowed.

    Queues below it count for it. Weeks begin on Monday in UTC.
    """
    return Json(await service_of(request).queue_histories.show(actor, name, weeks=weeks))


@router.get("/line", responses=answers(WaitingLine))
async def get_line(
    request: Request,
    actor: Caller,
    queue: Annotated[str, Query(max_length=200, description="Only this queue and those below it.")] = "",
    limit: Limit = 100,
    after: After = "",
) -> Json:
    """List the waiting jobs in scheduling order, each with its request and its reason for waiting."""
    return Json(await service_of(request).queues.waiting_line(actor, queue=queue, limit=limit, after=after))


@router.get("/cells", responses=answers(CellTree))
async def get_cells(
    request: Request,
    actor: Caller,
    engine: Annotated[str, Query(max_length=200, description="The whole of one engine.")] = "",
    under: Annotated[str, Query(max_length=400, description="The id of a cell; without it the whole cluster.")] = "",
    depth: Annotated[int, Query(ge=0, le=12, description="How many levels below the cell.")] = 2,
    limit: Annotated[int, Query(ge=1, le=5000, description="How many cells and devices at most.")] = 1000,
    after: After = "",
) -> Json:
    """Return part of the tree of cells.

    Each cell has its owner, its users (guaranteed or guest), and the devices that are leaving, unhealthy or closed.
    """
    found = await service_of(request).queues.cells(
        actor, engine=engine, under=under, depth=depth, limit=limit, after=after
    )
    return Json(found)


@router.get("/server/events", responses=answers(Page[EventRecord]))
async def list_server_events(request: Request, actor: Caller, limit: Limit = 100, after: After = "") -> Json:
    """List events of the server itself, newest first: components that failed, and their recovery."""
    return Json(await service_of(request).events.of_server(actor, limit=limit, after=after))


@router.get("/top", responses=answers(Top))
async def top(request: Request, actor: Caller) -> Json:
    """Return totals, and the running jobs with the resources that they hold."""
    return Json(await service_of(request).nodes.top(actor))
