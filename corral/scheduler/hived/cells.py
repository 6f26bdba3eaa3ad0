"""Why: HiveD decides on two forests at once, the cells that exist and the cells that are owned; this is their vocabulary.

A *physical cell* is a device or a set of near ones; a *virtual cell* is one that a virtual cluster owns without saying
which. Binding a virtual cell to a physical one keeps the shape: children are bound to children. Source: HiveD (OSDI'20).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corral.scheduler.hived.groups import Group

FREE: Final = -2
"""The priority of a cell that nobody uses."""
OPPORTUNISTIC: Final = -1
"""The priority of what runs on cells of no or of any virtual cluster, and yields to everybody else."""
GUARANTEED: Final = 0
"""The lowest priority that uses a virtual cluster's own cells."""
HIGHEST: Final = 1000
"""The highest priority there is."""
LEAF: Final = 1
"""The level of a device."""


class CellState(StrEnum):
    """Who has a physical cell. A preemptor reserves cells at once, so that two preemptors never want the same ones."""

    FREE = "Free"
    """Nobody uses it and nobody waits for it.

    -> USED | RESERVED
    """
    USED = "Used"
    """A group runs on it and nobody waits for it.

    -> FREE | RESERVING
    """
    RESERVING = "Reserving"
    """A group still runs on it, and a preemptor has it for the time after.

    -> USED | RESERVED
    """
    RESERVED = "Reserved"
    """Nobody runs on it any more, and a preemptor has it.

    -> FREE | USED
    """


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a chain: `number` counts from 1 (devices), `leaves` is the number of devices in such a cell."""

    chain: str
    number: int
    type: str
    arity: int
    leaves: int
    at_node: bool
    above_node: bool

    @property
    def reaches_node(self) -> bool:
        """Whether such a cell is a node or more."""
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
        """Sets that this cell puts itself into when its counts change."""

    @property
    def priority(self) -> int:
        """The highest priority in use inside it, FREE when there is none."""
        return max(self.used) if self.used else FREE

    def charge(self, priority: int, change: int) -> None:
        """Count `change` devices at `priority` here and in every cell above."""
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
    """A cell that exists. `free` says that it stands in the free list, `split` that a part of it is taken."""

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
        """A device's own state; above, used when any part is used, else what all parts are."""
        if not self.children:
            if self.user is None:
                return CellState.FREE if self.reserver is None else CellState.RESERVED
            return CellState.USED if self.reserver is None else CellState.RESERVING
        states = {child.state for child in self.children}
        if len(states) == 1:
            return states.pop()
        return CellState.USED if states & {CellState.USED, CellState.RESERVING} else CellState.FREE

    def leaves(self) -> Iterator[PhysicalCell]:
        """Its devices in the order of the configuration."""
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
        """A bound cell is as healthy as what it is bound to."""
        return self.physical is None or self.physical.healthy

    @property
    def state(self) -> CellState:
        """A bound cell is in the state of what it is bound to."""
        return CellState.FREE if self.physical is None else self.physical.state

    def leaves(self) -> Iterator[VirtualCell]:
        """Its devices in order."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


def bind(physical: PhysicalCell, virtual: VirtualCell) -> None:
    """Let `virtual` be `physical` from now on."""
    physical.virtual, virtual.physical = virtual, physical


def unbind(physical: PhysicalCell) -> None:
    """End the binding of `physical`, if there is one."""
    if physical.virtual is not None:
        physical.virtual.physical = None
        physical.virtual = None


def first_unbound(cells: tuple[VirtualCell, ...] | list[VirtualCell]) -> VirtualCell | None:
    """The first of `cells` that is not bound."""
    return next((cell for cell in cells if cell.physical is None), None)


def bind_bad(physical: PhysicalCell) -> None:
    """Show what is bad inside a bound cell to its owner: each bad child is bound to an unbound child of the owner's."""
    assert physical.virtual is not None
    for child in physical.children:
        if not child.healthy:
            if child.virtual is None:
                virtual = first_unbound(physical.virtual.children)
                assert virtual is not None, f"no unbound cell is left in {physical.virtual.address}"
                bind(child, virtual)
            bind_bad(child)


def unbind_all(physical: PhysicalCell) -> None:
    """End the binding of a cell that nobody uses, and of what is bad inside it."""
    unbind(physical)
    for child in physical.children:
        if child.virtual is not None:
            unbind_all(child)
