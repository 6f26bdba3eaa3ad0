"""Why: the scheduler sees every machine through one description, whatever engine or discovery it came from."""

from __future__ import annotations

import msgspec


class Device(msgspec.Struct, frozen=True):
    """One accelerator of a node."""

    index: int
    """Counts from 0 within its node; what placements name."""
    id: str
    """The vendor's unique id (GPU-…), or `NODE:INDEX` when described."""
    kind: str = "gpu"
    model: str = ""
    cells: tuple[tuple[str, str], ...] = ()
    """The cells between node and device, outermost first: (("numa", "0"), ("pcie-switch", "1"))."""
    memory_bytes: int = 0
    healthy: bool = True
    health_reason: str = ""
    described: bool = False
    """Whether the cluster document made it up: then no vendor variable is set for it."""


class Node(msgspec.Struct, frozen=True):
    """One machine, or one described share of a machine."""

    name: str
    """`engine/node`, unique in the cluster."""
    cells: tuple[tuple[str, str], ...] = ()
    """The cells above the node, outermost first: (("block", "b1"), ("rack", "r1")); names are unique per level."""
    devices: tuple[Device, ...] = ()
    links: tuple[tuple[int, ...], ...] = ()
    """Link quality by device pair, higher is better, 0 unknown; empty or len(devices) squared."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    shm_bytes: int = 0
    max_tasks: int = 1_000_000
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    ready: bool = True
    ready_reason: str = ""


class Inventory(msgspec.Struct, frozen=True):
    """All nodes of one engine as it saw them at once; `levels` names the cell levels, outermost first."""

    engine: str
    nodes: tuple[Node, ...]
    levels: tuple[str, ...] = ("block", "rack", "node", "numa", "pcie-switch", "device")
