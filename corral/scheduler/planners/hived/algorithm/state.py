"""HiveD's complete state, and its two basic moves: occupy devices and vacate devices."""

from __future__ import annotations

from collections.abc import Iterable

from corral.scheduler.planners.hived.algorithm.cell_ledger import Ledger
from corral.scheduler.planners.hived.algorithm.cells import OPPORTUNISTIC, PhysicalCell, VirtualCell, bind, unbind
from corral.scheduler.planners.hived.algorithm.forest import Forest
from corral.scheduler.planners.hived.algorithm.free_list import Order
from corral.scheduler.planners.hived.algorithm.groups import Group, GroupState
from corral.scheduler.planners.hived.algorithm.topology import RankedNodes

Pair = tuple[PhysicalCell, VirtualCell | None]
"""A device and its virtual device; None if it is used opportunistically."""


class State:
    """The forests, the ledger of each chain, the groups, and the views that searches choose nodes from."""

    def __init__(self, forest: Forest, order: Order) -> None:
        self.forest = forest
        self.ledgers = {name: Ledger(chain, forest.tenants, order) for name, chain in forest.chains.items()}
        self.groups: dict[str, Group] = {}
        self.bad_nodes: set[str] = set()
        self.bad_devices: set[tuple[str, int]] = set()
        self.now = 0.0
        """The time of the current event, in seconds since the epoch."""
        self.owned_views = {
            (tenant.name, chain): RankedNodes(roots, pack_all=True)
            for tenant in forest.tenants.values()
            for chain, roots in tenant.roots.items()
        }
        self.pinned_views = {
            (tenant.name, known): RankedNodes([root], pack_all=True)
            for tenant in forest.tenants.values()
            for known, root in tenant.pinned.items()
        }
        self.physical_views = {
            name: RankedNodes(chain.cells[chain.top], pack_all=False) for name, chain in forest.chains.items()
        }
        for tenant in forest.tenants.values():
            for known, root in tenant.pinned.items():
                cell = forest.pins[known]
                bind(cell, root)
                self.ledger_of(cell).take(cell, tenant.name)

    def ledger_of(self, cell: PhysicalCell | VirtualCell) -> Ledger:
        """Return the ledger of the chain that `cell` is in."""
        return self.ledgers[cell.kind.chain]

    def is_healthy(self, leaf: PhysicalCell) -> bool:
        """Return whether neither the device nor its node is known to be bad."""
        return leaf.nodes[0] not in self.bad_nodes and (leaf.nodes[0], leaf.device) not in self.bad_devices

    def settle(self) -> None:
        """Update the doomed cells of every chain that the last event changed."""
        for ledger in self.ledgers.values():
            ledger.settle()

    def occupy(self, pairs: Iterable[Pair], priority: int) -> None:
        """Charge devices to their group's priority, bind their virtual cells, and take newly bound owned cells.

        All are bound before any owned cell is taken, because taking binds bad parts to the remaining virtual cells.
        """
        taken: list[VirtualCell] = []
        for physical, virtual in pairs:
            if virtual is None:
                physical.charge(OPPORTUNISTIC, 1)
                continue
            self.ledger_of(physical).promote(virtual.root)
            physical.charge(priority, 1)
            virtual.charge(priority, 1)
            here: PhysicalCell | None = physical
            at: VirtualCell | None = virtual
            while at is not None and here is not None and at.physical is None:
                bind(here, at)
                if at.parent is None:
                    taken.append(at)
                here, at = here.parent, at.parent
        for root in taken:
            assert root.physical is not None
            self.ledger_of(root).take(root.physical, root.vc)

    def vacate(self, cells: Iterable[PhysicalCell]) -> None:
        """Undo `occupy`; bad parts stay bound while their owned cell is in use, so that the owner sees them."""
        roots: dict[VirtualCell, PhysicalCell] = {}
        for physical in cells:
            virtual = physical.virtual
            physical.charge(physical.priority, -1)
            if virtual is None or virtual.busy == 0:
                continue
            virtual.charge(virtual.priority, -1)
            assert virtual.root.physical is not None
            roots[virtual.root] = virtual.root.physical
            if physical.healthy:
                _unbind_upwards(physical)
        for root, cell in roots.items():
            if root.busy == 0 and not root.pinned_id:
                self.ledger_of(cell).give_back(cell, root.vc)

    def reserve(self, group: Group) -> None:
        """Give a preemptor its devices at once; groups that still run there are being preempted."""
        for cell, _ in group.held():
            if cell.user is not None:
                cell.user.state = GroupState.BEING_PREEMPTED
                self.vacate([cell])
            cell.reserver = group
        self.occupy(group.held(), group.priority)
        self.groups[group.name] = group

    def cancel(self, group: Group) -> None:
        """Cancel a preemption: devices that other groups still use go back to them with their virtual cells."""
        cells = [cell for cell, _ in group.held()]
        self.vacate(cells)
        back: dict[Group, list[PhysicalCell]] = {}
        for cell in cells:
            cell.reserver = None
            if cell.user is not None:
                back.setdefault(cell.user, []).append(cell)
        for user, returned in back.items():
            wanted = set(returned)
            self.occupy(((cell, owned) for cell, owned in user.held() if cell in wanted), user.priority)
        del self.groups[group.name]

    def release(self, group: Group) -> None:
        """Remove a group: its devices become free, or belong to their preemptor alone."""
        cells = [cell for cell, _ in group.held()]
        self.vacate([cell for cell in cells if cell.reserver is None])
        for cell in cells:
            cell.user = None
        del self.groups[group.name]

    def demote(self, group: Group, by: str) -> list[list[VirtualCell | None]]:
        """Preempt a group lazily: it keeps running opportunistically, and its virtual cells become free.

        Returns the virtual cells of its devices, which `promote` takes.
        """
        mine = [cell for cell, owned in group.held() if owned is not None and cell.reserver is None]
        self.vacate(mine)
        self.occupy([(cell, None) for cell in mine], OPPORTUNISTIC)
        before = [list(slot.owned) for slot in group.slots]
        for slot in group.slots:
            slot.owned = [None] * slot.size
        group.guaranteed = False
        group.lazily_preempted_by, group.lazily_preempted_at = by, self.now
        return before

    def promote(self, group: Group, before: list[list[VirtualCell | None]]) -> None:
        """Undo `demote`."""
        for slot, owned in zip(group.slots, before, strict=True):
            slot.owned = owned
        mine = [(cell, owned) for cell, owned in group.held() if owned is not None and cell.reserver is None]
        self.vacate([cell for cell, _ in mine])
        self.occupy(mine, group.priority)
        group.guaranteed = True
        group.lazily_preempted_by, group.lazily_preempted_at = "", 0.0

    def evict(self, root: VirtualCell, by: str) -> None:
        """Free an owned cell: its preemptors are cancelled and its groups demoted."""
        for leaf in root.leaves():
            cell = leaf.physical
            if cell is not None and leaf.busy and cell.reserver is not None:
                self.cancel(cell.reserver)
        for leaf in root.leaves():
            cell = leaf.physical
            if cell is not None and leaf.busy and cell.user is not None and cell.user.guaranteed:
                self.demote(cell.user, by)


def _unbind_upwards(physical: PhysicalCell) -> None:
    """Unbind a device, and those ancestors that were bound only because of it."""
    at: PhysicalCell | None = physical
    while at is not None and at.virtual is not None and not at.pinned:
        parent = at.virtual.parent
        unbind(at)
        if parent is None or any(child.physical is not None for child in parent.children):
            return
        at = at.parent
