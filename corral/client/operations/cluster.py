"""Calls for nodes, devices, cells, queues and waiting jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corral.client.calls import Call, call

if TYPE_CHECKING:
    from corral.client.schema import (
        CellTree,
        CellView,
        ClusterUse,
        CordonView,
        DeviceTimeline,
        DeviceView,
        HealthEntryView,
        HealthView,
        LedgerView,
        NodeView,
        QueueHistory,
        QueueView,
        ServerPart,
        Top,
        WaitingLine,
    )
    from corral.client.types import Page


def nodes(*, limit: int = 200, after: str = "") -> Call[Page[NodeView]]:
    """Return a page of the nodes."""
    return call("GET", "/nodes", {"limit": limit, "after": after})


def node(name: str) -> Call[NodeView]:
    """Return one node, by ENGINE/NODE."""
    return call("GET", f"/nodes/{name}")


def devices(*, limit: int = 200, after: str = "") -> Call[Page[DeviceView]]:
    """Return a page of the devices."""
    return call("GET", "/devices", {"limit": limit, "after": after})


def device_timeline(
    *, node: str = "", begin: str = "", end: str = "", limit: int = 20, after: str = ""
) -> Call[DeviceTimeline]:
    """Return which jobs were on the devices of a node, or of a page of nodes, and which are expected to be.

    By default a day back and a day ahead; at most 48 hours.
    """
    query = {"node": node, "from": begin, "to": end, "limit": limit, "after": after}
    return call("GET", "/devices/timeline", query)


def cluster() -> Call[CellView]:
    """Return the tree of cells."""
    return call("GET", "/cluster")


def cluster_use() -> Call[Page[ClusterUse]]:
    """Return the queues and applications of clusters that Corral shares with others, such as YARN's."""
    return call("GET", "/cluster/use")


def server_parts() -> Call[Page[ServerPart]]:
    """Return the server's own parts with state and version: front, store, scheduler, engines, agents."""
    return call("GET", "/server-parts")


def queues(*, limit: int = 200, after: str = "") -> Call[Page[QueueView]]:
    """Return a page of the queues."""
    return call("GET", "/queues", {"limit": limit, "after": after})


def queue(name: str) -> Call[QueueView]:
    """Return one queue."""
    return call("GET", f"/queues/{name}")


def queue_history(name: str, *, weeks: int = 8) -> Call[QueueHistory]:
    """Return by week how long the jobs of a queue waited, what they held, and what the queue lent and borrowed."""
    return call("GET", f"/queues/{name}/history", {"weeks": weeks})


def line(*, queue: str = "", limit: int = 100, after: str = "") -> Call[WaitingLine]:
    """Return a page of waiting jobs in order (`items`, `next`, `total`), of a queue with those below it, or of all."""
    return call("GET", "/line", {"queue": queue, "limit": limit, "after": after})


def cells(*, engine: str = "", under: str = "", depth: int = 2, limit: int = 1000, after: str = "") -> Call[CellTree]:
    """Return part of the tree of cells: an engine, the cell `under`, or all; at most `limit` cells and devices."""
    query = {"engine": engine, "under": under, "depth": str(depth), "limit": limit, "after": after}
    return call("GET", "/cells", query)


def ledger(queue: str) -> Call[LedgerView]:
    """Return the device-seconds that a queue has lent and borrowed."""
    return call("GET", f"/queues/{queue}/ledger")


def cordon(node: str, *, why: str = "") -> Call[CordonView]:
    """Close a node (ENGINE/NODE) to new tasks."""
    return call("POST", f"/nodes/{node}/cordon", data={"why": why})


def uncordon(node: str) -> Call[None]:
    """Open a node to new tasks again."""
    return call("POST", f"/nodes/{node}/uncordon")


def drain(
    node: str, *, why: str = "", grace_seconds: float | None = None, after_jobs: bool = False
) -> Call[CordonView]:
    """Close a node, and move its tasks elsewhere or let them end by themselves first."""
    data = {"why": why, "graceSeconds": grace_seconds, "afterJobs": after_jobs}
    return call("POST", f"/nodes/{node}/drain", data=data)


def node_health() -> Call[Page[HealthView]]:
    """Return the nodes with signs of trouble, the worst first, in one page; other nodes are healthy."""
    return call("GET", "/node-health")


def node_history(node: str, *, limit: int = 100, after: str = "") -> Call[Page[HealthEntryView]]:
    """Return a page of a node's (ENGINE/NODE) signs of trouble and moves between states, newest first."""
    return call("GET", f"/nodes/{node}/health", {"limit": limit, "after": after})


def change_health(node: str, act: str, *, why: str = "") -> Call[HealthView]:
    """Move a node (ENGINE/NODE): `repairing` takes it over, `validate` has it checked, `healthy` ends the suspicion."""
    return call("POST", f"/nodes/{node}/health", data={"act": act, "why": why})


def top() -> Call[Top]:
    """Return totals, and the running jobs."""
    return call("GET", "/top")
