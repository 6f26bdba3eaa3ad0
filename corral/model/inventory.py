"""Why: the scheduler sees every machine through one description, whatever engine or discovery it came from."""

from __future__ import annotations

import msgspec

UNBOUNDED = frozenset({"ports", "disk"})
"""What a node has without end when it does not say how much; of any other resource it then has none."""
MPS_LABEL = ("corral.dev/mps", "true")
"""What a node's labels say when NVIDIA's Multi-Process Service runs there and keeps tasks to their parts."""
ELSEWHERE = "volume.corral.dev/"
"""How the labels begin that a node has for each volume claim, by its name, whose volume cannot be reached from there."""
LEVELS = ("block", "rack", "node", "numa", "nvlink", "pcie-switch", "device")
"""The cell levels where nobody configures others, outermost first."""


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
    chain: str = ""
    """The type of the outermost cell it is in (HiveD's cell chain); "" where no cell types are configured."""
    parent: int = -1
    """The index of the device that this is a slice of: one of the two is given, never both; -1 is none."""
    counted: bool = False
    """Whether only its number is known: which one a task really gets, somebody else chooses (a device plugin)."""


class Taint(msgspec.Struct, frozen=True):
    """Why a node takes only tasks that tolerate it (Kubernetes' meaning)."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"
    """`NoSchedule`, `NoExecute` (which asks also those to leave that run there), or `PreferNoSchedule`."""


class Mismatch(msgspec.Struct, frozen=True):
    """One thing that a machine reports otherwise than its document says, each side as people read it."""

    what: str
    """`devices` (how many of which model), `numbers`, `memory`, or a level whose cells differ."""
    configured: str
    reported: str


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
    resources: dict[str, int] = {}
    """Every other resource by its name: `ports` (how many can be given), `disk` (bytes), or any count."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    ready_reason: str = ""
    mismatches: tuple[Mismatch, ...] = ()
    """What the machine reports otherwise than configured; such a node is not ready."""
    cordoned: bool = False
    """It is not ready only because a person closed it to new tasks (`ready_reason` says who, and why)."""


class PinnedCell(msgspec.Struct, frozen=True):
    """A cell with a name of its own, which one queue can own exactly."""

    name: str
    level: str
    type: str
    """Its cell type; "" where no cell types are configured."""
    devices: tuple[tuple[str, tuple[int, ...]], ...]
    """By node, the indexes of its devices."""


class Inventory(msgspec.Struct, frozen=True):
    """All nodes of one engine as it saw them at once; `levels` names the cell levels, outermost first."""

    engine: str
    nodes: tuple[Node, ...]
    levels: tuple[str, ...] = LEVELS
    pinned: tuple[PinnedCell, ...] = ()
