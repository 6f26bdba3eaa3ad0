"""Why: however a cluster is written down, engines are told the same: nodes with devices, and the cells of each."""

from __future__ import annotations

from dataclasses import dataclass, field

Cells = tuple[tuple[str, str], ...]
"""(level, name) pairs, outermost first."""


@dataclass(frozen=True, slots=True)
class DeviceDescription:
    """One described device; `cells` are those between its node and itself, named by number within the node."""

    index: int
    kind: str
    model: str
    memory_bytes: int = 0
    cells: Cells = ()
    chain: str = ""
    """The type of the outermost cell it is in; "" where no cell types are written."""
    parent: int = -1
    """The index of the device that it is a slice of; -1 is none."""


@dataclass(frozen=True, slots=True)
class NodeDescription:
    """One described node, without its engine's prefix; amounts of 0 are the machine's own."""

    name: str
    cells: Cells = ()
    devices: tuple[DeviceDescription, ...] = ()
    """Equal nodes share one tuple."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    shm_bytes: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    resources: dict[str, int] = field(default_factory=dict)
    """Every other resource by its name: `ports`, `disk` in bytes, or any count."""
    taints: tuple[tuple[str, str, str], ...] = ()
    """(key, value, effect)."""
    links: tuple[tuple[int, ...], ...] = ()
    """Link quality by device pair as `corral.spec.links` ranks it; () is unknown."""
    found: bool = False
    """Whether its devices are those that the machine reports, and `devices` only what is expected of them."""


@dataclass(frozen=True, slots=True)
class PinnedCell:
    """A cell that one queue can own exactly: its level, its type ("" without types), and its devices by node.

    `name` is its own where it is a node or above one, "" below.
    """

    level: str
    type: str
    name: str
    devices: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class TypeLevel:
    """What cells of a type are to the scheduler: those of this level with devices of this model."""

    level: str
    model: str


@dataclass(frozen=True, slots=True)
class Machines:
    """Everything a cluster document says about machines, written out."""

    levels: tuple[str, ...]
    """Outermost first; node and device are among them."""
    nodes: tuple[NodeDescription, ...] = ()
    pinned: dict[str, PinnedCell] = field(default_factory=dict)
    types: dict[str, TypeLevel] = field(default_factory=dict)
