"""Calls for nodes, devices, cells, queues and waiting jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corral.client.calls import Call, call

if TYPE_CHECKING:
    from corral.client.types import Page, Record


def nodes(*, limit: int = 200, after: str = "") -> Call[Page[Record]]:
    """Return a page of the nodes."""
    return call("GET", "/nodes", {"limit": limit, "after": after})


def node(name: str) -> Call[Record]:
    """Return one node, by ENGINE/NODE."""
    return call("GET", f"/nodes/{name}")


def devices(*, limit: int = 200, after: str = "") -> Call[Page[Record]]:
    """Return a page of the devices."""
    return call("GET", "/devices", {"limit": limit, "after": after})


def cluster() -> Call[Record]:
    """Return the tree of cells."""
    return call("GET", "/cluster")


def queues(*, limit: int = 200, after: str = "") -> Call[Page[Record]]:
    """Return a page of the queues."""
    return call("GET", "/queues", {"limit": limit, "after": after})


def queue(name: str) -> Call[Record]:
    """Return one queue."""
    return call("GET", f"/queues/{name}")


def line(*, queue: str = "", limit: int = 100, after: str = "") -> Call[Record]:
    """Return a page of waiting jobs in order (`items`, `next`, `total`), of a queue with those below it, or of all."""
    return call("GET", "/line", {"queue": queue, "limit": limit, "after": after})


def cells(*, engine: str = "", under: str = "", depth: int = 2, limit: int = 1000, after: str = "") -> Call[Record]:
    """Return part of the tree of cells: an engine, the cell `under`, or all; at most `limit` cells and devices."""
    query = {"engine": engine, "under": under, "depth": str(depth), "limit": limit, "after": after}
    return call("GET", "/cells", query)


def ledger(queue: str) -> Call[Record]:
    """Return the device-seconds that a queue has lent and borrowed."""
    return call("GET", f"/queues/{queue}/ledger")


def cordon(node: str, *, why: str = "") -> Call[Record]:
    """Close a node (ENGINE/NODE) to new tasks."""
    return call("POST", f"/nodes/{node}/cordon", data={"why": why})


def uncordon(node: str) -> Call[None]:
    """Open a node to new tasks again."""
    return call("POST", f"/nodes/{node}/uncordon")


def drain(node: str, *, why: str = "", grace_seconds: float | None = None, after_jobs: bool = False) -> Call[Record]:
    """Close a node, and move its tasks elsewhere or let them end by themselves first."""
    data = {"why": why, "graceSeconds": grace_seconds, "afterJobs": after_jobs}
    return call("POST", f"/nodes/{node}/drain", data=data)


def top() -> Call[Record]:
    """Return totals, and the running jobs."""
    return call("GET", "/top")
