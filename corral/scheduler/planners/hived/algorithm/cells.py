"""The two kinds of cells that HiveD works on: physical cells that exist and virtual cells that are owned.

A *physical cell* is a device or a set of nearby ones. A *virtual cell* is owned by a virtual cluster without saying
which physical cell it is. Binding keeps the tree shape: children are bound to children. Source: HiveD (OSDI'20).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corral.scheduler.planners.hived.algorithm.groups import Group

FREE: Final = -2
"""The priority of an unused cell."""
OPPORTUNISTIC: Final = -1
"""The priority of opportunistic groups, which use any cell and yield to all others."""
GUARANTEED: Final = 0
"""The lowest priority that uses a virtual cluster's own cells."""
HIGHEST: Final = 1000
"""The highest priority."""
LEAF: Final = 1
"""The level number of a device."""


class CellState(StrEnum):
    """The state of a physical cell.

    A preemptor reserves cells at once, so that two preemptors never want the same cells.
    """

    FREE = "Free"
    """No group uses it and none waits for it.

    -> USED | RESERVED
    """
    USED = "Used"
    """A group runs on it and none waits for it.

    -> FREE | RESERVING
    """
    RESERVING = "Reserving"
    """A group still runs on it, and a preemptor has reserved it.

    -> USED | RESERVED
    """
    RESERVED = "Reserved"
    """No group runs on it any more, and a preemptor has reserved it.

    -> FREE | USED
    """


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a chain: `number` counts from 1 (devices), `leaves` is the number of devices per cell."""

    chain: str
    number: int
    type: str
    arity: int
    leaves: int
    at_node: bool
    above_node: bool

    @property
    def reaches_node(self) -> bool:
        """Return whether such a cell is a node or larger."""
        return self.at_node or self.above_node


class Cell:
    """A cell of either kind; `used` counts its devices in use by priority, `busy` is their sum."""

    __slots__ = ("busy", "children", "kind", "level", "ordinal", "parent", "used", "watchers")

    def __init__(self, kind: Level, ordinal: int) -> None:
        self.kind = kind
        self.level = kind.number
        self.ordinal = ordinal
        self.parent: Cell | None = None
        self.children: tuple[Cell, ...] = ()
        self.used: dict[int, int] = {}
        self.busy = 0
        self.watchers: tuple[set[Cell], ...] = ()
        """Sets that this cell adds itself to when its counts change."""

    @property
    def priority(self) -> int:
        """Return the highest priority in use inside it, or FREE."""
        return max(self.used) if self.used else FREE

    def charge(self, priority: int, change: int) -> None:
        """Add `change` devices at `priority` here and in every ancestor."""
        cell: Cell | None = self
        while cell is not None:
            left = cell.used.get(priority, 0) + change
            if left:
                cell.used[priority] = left
            else:
                del cell.used[priority]
            cell.busy += change
            for changed in cell.watchers:
                changed.add(cell)
            cell = cell.parent


class PhysicalCell(Cell):
    """A cell that exists; `free` means it is in the free list, `split` that a part of it is taken."""

    __slots__ = ("address", "device", "free", "healthy", "nodes", "pinned", "reserver", "split", "user", "virtual")
    parent: PhysicalCell | None
    children: tuple[PhysicalCell, ...]

    def __init__(self, kind: Level, ordinal: int, address: str) -> None:
        super().__init__(kind, ordinal)
        self.address = address
        self.nodes: tuple[str, ...] = ()
        self.device = -1
        self.healthy = True
        self.free = False
        self.split = False
        self.pinned = False
        self.virtual: VirtualCell | None = None
        self.user: Group | None = None
        self.reserver: Group | None = None

    @property
    def state(self) -> CellState:
        """Return a device's own state, or the state of a larger cell derived from its parts.

        Parts of equal state pass it on. Of mixed parts, a used or reserving one makes the cell USED; else it is FREE.
        """
        if not self.children:
            if self.user is None:
                return CellState.FREE if self.reserver is None else CellState.RESERVED
            return CellState.USED if self.reserver is None else CellState.RESERVING
        states = {child.state for child in self.children}
        if len(states) == 1:
            return states.pop()
        return CellState.USED if states & {CellState.USED, CellState.RESERVING} else CellState.FREE

    def leaves(self) -> Iterator[PhysicalCell]:
        """Yield its devices in the order of the configuration."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


class VirtualCell(Cell):
    """A cell that a virtual cluster owns; `root` is the one the quota names (HiveD's *preassigned* cell)."""

    __slots__ = ("address", "physical", "pinned_id", "root", "vc")
    parent: VirtualCell | None
    children: tuple[VirtualCell, ...]

    def __init__(self, kind: Level, ordinal: int, address: str, vc: str, pinned_id: str) -> None:
        super().__init__(kind, ordinal)
        self.address = address
        self.vc = vc
        self.pinned_id = pinned_id
        self.root: VirtualCell = self
        self.physical: PhysicalCell | None = None

    @property
    def healthy(self) -> bool:
        """Return whether the physical cell it is bound to is healthy; True if unbound."""
        return self.physical is None or self.physical.healthy

    @property
    def state(self) -> CellState:
        """Return the state of the physical cell it is bound to; FREE if unbound."""
        return CellState.FREE if self.physical is None else self.physical.state

    def leaves(self) -> Iterator[VirtualCell]:
        """Yield its devices in order."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


def bind(physical: PhysicalCell, virtual: VirtualCell) -> None:
    """Bind `virtual` to `physical`."""
    physical.virtual, virtual.physical = virtual, physical


def unbind(physical: PhysicalCell) -> None:
    """Unbind `physical` if it is bound."""
    if physical.virtual is not None:
        physical.virtual.physical = None
        physical.virtual = None


def first_unbound(cells: tuple[VirtualCell, ...] | list[VirtualCell]) -> VirtualCell | None:
    """Return the first of `cells` that is not bound."""
    return next((cell for cell in cells if cell.physical is None), None)


def bind_bad(physical: PhysicalCell) -> None:
    """Show the bad parts of a bound cell to its owner by binding each bad child to an unbound virtual child."""
    assert physical.virtual is not None
    for child in physical.children:
        if not child.healthy:
            if child.virtual is None:
                virtual = first_unbound(physical.virtual.children)
                assert virtual is not None, f"no unbound cell is left in {physical.virtual.address}"
                bind(child, virtual)
            bind_bad(child)


def unbind_all(physical: PhysicalCell) -> None:
    """Unbind an unused cell and the bad cells inside it."""
    unbind(physical)
    for child in physical.children:
        if child.virtual is not None:
            unbind_all(child)
