"""The machines and devices of an engine, in one form for every engine and discovery method."""

from __future__ import annotations

import msgspec

MPS_LABEL = ("corral.dev/mps", "true")
"""The node label that says that NVIDIA's Multi-Process Service runs there and enforces device fractions."""
ELSEWHERE = "volume.corral.dev/"
"""Prefix of a node label, followed by a volume claim's name: the claim's volume cannot be reached from the node."""
HOST_LABEL = "corral.dev/host"
"""The node label with the name or address of the host, where the node's own name is another."""
LEVELS = ("block", "rack", "node", "numa", "nvlink", "pcie-switch", "device")
"""The default cell levels, outermost first."""


class Device(msgspec.Struct, frozen=True):
    """One accelerator of a node."""

    index: int
    """Counts from 0 within its node; placements use it."""
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
    """Whether it exists only in the cluster document: its tasks see no real device."""
    chain: str = ""
    """The type of its outermost cell (HiveD's cell chain); "" if no cell types are configured."""
    parent: int = -1
    """The index of the device that this is a slice of; -1 is none. Slice and device are never both allocated."""
    counted: bool = False
    """Whether only the number of devices is known: a device plugin chooses the one that a task gets."""


class Taint(msgspec.Struct, frozen=True):
    """A node property that keeps tasks away unless they tolerate it, as in Kubernetes."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"
    """`NoSchedule`, `NoExecute` (which also evicts running tasks), or `PreferNoSchedule`."""


class Mismatch(msgspec.Struct, frozen=True):
    """One difference between a machine's report and its document, each side in words."""

    what: str
    """`devices` (count per model), `numbers`, `memory`, or a level whose cells differ."""
    configured: str
    reported: str


class Node(msgspec.Struct, frozen=True):
    """One machine, or one described part of a machine."""

    name: str
    """`engine/node`, unique in the cluster."""
    cells: tuple[tuple[str, str], ...] = ()
    """The cells above the node, outermost first: (("block", "b1"), ("rack", "r1")); names are unique per level."""
    devices: tuple[Device, ...] = ()
    links: tuple[tuple[int, ...], ...] = ()
    """Link quality per device pair, higher is better, 0 unknown; empty, or a len(devices) x len(devices) matrix."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    shm_bytes: int = 0
    max_tasks: int = 1_000_000
    resources: dict[str, int] = {}
    """Every other resource by name: `ports` (a count), `disk` (bytes), or any count."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    ready_reason: str = ""
    mismatches: tuple[Mismatch, ...] = ()
    """Differences between report and configuration; a node with any is not ready."""
    cordoned: bool = False
    """It is not ready only because a person cordoned it (`ready_reason` says who and why)."""
    lost: bool = False
    """Its engine has given it up with all that ran there, so nobody waits for it; it is not ready."""


class PinnedCell(msgspec.Struct, frozen=True):
    """A named cell, which exactly one queue can own."""

    name: str
    level: str
    type: str
    """Its cell type; "" if no cell types are configured."""
    devices: tuple[tuple[str, tuple[int, ...]], ...]
    """By node, the indexes of its devices."""


class Inventory(msgspec.Struct, frozen=True):
    """A snapshot of all nodes of one engine; `levels` names the cell levels, outermost first."""

    engine: str
    nodes: tuple[Node, ...]
    levels: tuple[str, ...] = LEVELS
    pinned: tuple[PinnedCell, ...] = ()
