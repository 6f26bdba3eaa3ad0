"""The machines of a cluster document in their expanded form: nodes, devices and the cells that contain them."""

from __future__ import annotations

from dataclasses import dataclass, field

Cells = tuple[tuple[str, str], ...]
"""(level, name) pairs, outermost first."""


@dataclass(frozen=True, slots=True)
class DeviceDescription:
    """One device; `cells` lists the cells between its node and the device, numbered within the node."""

    index: int
    kind: str
    model: str
    memory_bytes: int = 0
    cells: Cells = ()
    chain: str = ""
    """The type of the outermost cell around the device; "" in documents without cell types."""
    parent: int = -1
    """The index of the device that this one is a slice of; -1 means none."""


@dataclass(frozen=True, slots=True)
class NodeDescription:
    """One node, named without its engine's prefix; an amount of 0 means the machine's own."""

    name: str
    cells: Cells = ()
    devices: tuple[DeviceDescription, ...] = ()
    """Nodes with equal devices share one tuple."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    shm_bytes: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    resources: dict[str, int] = field(default_factory=dict)
    """All other resources by name: `ports`, `disk` in bytes, or any count."""
    taints: tuple[tuple[str, str, str], ...] = ()
    """(key, value, effect)."""
    links: tuple[tuple[int, ...], ...] = ()
    """Link quality per device pair, ranked as in `corral.spec.link_quality`; () means unknown."""
    found: bool = False
    """True when the machine reports its devices; `devices` is then only the expectation."""


@dataclass(frozen=True, slots=True)
class PinnedCell:
    """A cell that one queue can own exactly: level, type ("" without types) and devices by node.

    `name` is set for nodes and cells above them; it is "" for cells inside a node.
    """

    level: str
    type: str
    name: str
    devices: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class TypeLevel:
    """How the scheduler sees a cell type: cells of this level whose devices are of this model."""

    level: str
    model: str


@dataclass(frozen=True, slots=True)
class Machines:
    """All machines of a cluster document, expanded."""

    levels: tuple[str, ...]
    """Outermost first; includes node and device."""
    nodes: tuple[NodeDescription, ...] = ()
    pinned: dict[str, PinnedCell] = field(default_factory=dict)
    types: dict[str, TypeLevel] = field(default_factory=dict)
