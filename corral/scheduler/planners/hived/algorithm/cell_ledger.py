"""Account for the cells of one chain, so that never fewer are left than are owned and unused, per level.

The ledger keeps the free list, in which buddies merge and larger cells are split; the cells that are left; the cells
that each virtual cluster has not taken yet; and the bad cells among the free ones. It also keeps the *doomed* cells. If
a virtual cluster has more unused cells than healthy ones are left, some are bound to bad cells at once. Its owner then
sees them, and no group is sent there. Source: HiveD (OSDI'20), sections 3-4, and pkg/algorithm.
"""

from __future__ import annotations

from bisect import insort

from corral.scheduler.planners.hived.algorithm.cells import (
    LEAF,
    PhysicalCell,
    VirtualCell,
    bind,
    bind_bad,
    first_unbound,
    unbind,
    unbind_all,
)
from corral.scheduler.planners.hived.algorithm.forest import Chain, Tenant
from corral.scheduler.planners.hived.algorithm.free_list import FreeList, Order


class Ledger:
    """The accounts of one chain; index 0 of lists by level is unused, and `bad` and `doomed` hold cell ordinals."""

    def __init__(self, chain: Chain, tenants: dict[str, Tenant], order: Order) -> None:
        self.chain = chain
        self.levels = range(LEAF, chain.top + 1)
        self.free = [FreeList(order) for _ in chain.levels]
        self.left = [0] * (chain.top + 1)
        self.bad: list[set[int]] = [set() for _ in chain.levels]
        """The bad cells among those that are left."""
        self.owned: dict[str, list[list[VirtualCell]]] = {}
        self._owns: dict[str, list[int]] = {}
        self.unused: dict[str, list[int]] = {}
        """For each virtual cluster and level: its owned cells, pinned ones included, that are not bound."""
        self.needed = [0] * (chain.top + 1)
        """The sum of `unused` over the virtual clusters."""
        self.doomed: dict[str, list[list[int]]] = {}
        self.unsettled = False
        for cell in chain.cells[chain.top]:
            self._put(cell)
        for level in self.levels:
            self.left[level] = len(chain.cells[level])
        for tenant in tenants.values():
            self._admit(tenant)

    def _admit(self, tenant: Tenant) -> None:
        pinned = [root for root in tenant.pinned.values() if root.kind.chain == self.chain.name]
        if not pinned and self.chain.name not in tenant.owned:
            return
        owned: list[list[VirtualCell]] = tenant.owned.get(self.chain.name, [[] for _ in self.chain.levels])
        self.owned[tenant.name] = owned
        counts = [len(cells) for cells in owned]
        for root in pinned:
            counts[root.level] += 1
        self._owns[tenant.name] = counts
        self.unused[tenant.name] = list(counts)
        self.doomed[tenant.name] = [[] for _ in self.chain.levels]
        for level in self.levels:
            self.needed[level] += counts[level]

    def owns(self) -> dict[str, list[int]]:
        """Return the number of cells that each virtual cluster owns per level, pinned ones included."""
        return self._owns

    def safe_to_take(self, cell: PhysicalCell) -> bool:
        """Return whether an owner of such a cell may take `cell` without breaking another guarantee."""
        upto = cell.level
        parent = cell.parent
        while parent is not None and not parent.split:
            upto, parent = parent.level, parent.parent
        return self._safe_to_split(cell.level, upto)

    def _safe_to_split(self, level: int, upto: int) -> bool:
        spare = self.spare(self.free_counts(), self.needed)
        return all(spare[each] > 0 for each in range(level + 1, upto + 1))

    def free_counts(self) -> list[int]:
        """Return the number of cells of each level in the free list."""
        return [len(cells) for cells in self.free]

    def spare(self, free: list[int], needed: list[int]) -> list[int]:
        """Return per level how many cells can be split without a shortage.

        It assumes that the levels above split all their spare cells.
        """
        spare, above = [0] * len(free), 0
        for level in reversed(self.levels):
            spare[level] = above + free[level] - needed[level]
            above = spare[level] * self.chain.levels[level].arity
        return spare

    def take(self, cell: PhysicalCell, vc: str) -> None:
        """Give an already bound `cell` to `vc`: remove it from the free list, splitting larger cells as needed."""
        self.unsettled = True
        level = cell.level
        self.unused[vc][level] -= 1
        self.needed[level] -= 1
        self._count(cell, -1)
        at: PhysicalCell = cell
        while at.parent is not None and not at.parent.split:
            at.parent.split = True
            for buddy in at.parent.children:
                self._put(buddy)
            self._remove(at)
            at = at.parent
            self.left[at.level] -= 1
            self.bad[at.level].discard(at.ordinal)
        self._remove(at)
        bind_bad(cell)

    def give_back(self, cell: PhysicalCell, vc: str) -> None:
        """Take `cell` back from `vc`: end its bindings and merge it with its free buddies."""
        self.unsettled = True
        unbind_all(cell)
        level = cell.level
        self.unused[vc][level] += 1
        self.needed[level] += 1
        self._count(cell, 1)
        at = cell
        while at.parent is not None and all(buddy.free or buddy is at for buddy in at.parent.children):
            for buddy in at.parent.children:
                if buddy is not at:
                    self._remove(buddy)
            at = at.parent
            at.split = False
            self.left[at.level] += 1
            if not at.healthy:
                self.bad[at.level].add(at.ordinal)
        self._put(at)

    def _count(self, cell: PhysicalCell, change: int) -> None:
        for level in range(LEAF, cell.level + 1):
            self.left[level] += change * (cell.kind.leaves // self.chain.levels[level].leaves)
        self._count_bad(cell, change)

    def _count_bad(self, cell: PhysicalCell, change: int) -> None:
        if cell.healthy:
            return
        if change > 0:
            self.bad[cell.level].add(cell.ordinal)
        else:
            self.bad[cell.level].discard(cell.ordinal)
        for child in cell.children:
            self._count_bad(child, change)

    def _put(self, cell: PhysicalCell) -> None:
        cell.free = True
        self.free[cell.level].add(cell)

    def _remove(self, cell: PhysicalCell) -> None:
        cell.free = False
        self.free[cell.level].remove(cell)

    def is_left(self, cell: PhysicalCell) -> bool:
        """Return whether `cell` is in the free list or inside a cell that is."""
        at: PhysicalCell | None = cell
        while at is not None:
            if at.free:
                return True
            if at.split:
                return False
            at = at.parent
        return False

    def set_bad(self, leaf: PhysicalCell) -> None:
        """Mark a device and every cell that contains it as bad, and show the bad cells to their owners."""
        self.unsettled = True
        gone = []
        at: PhysicalCell | None = leaf
        while at is not None and at.healthy:
            at.healthy = False
            gone.append(at)
            at = at.parent
        for cell in reversed(gone):
            if self.is_left(cell):
                self.bad[cell.level].add(cell.ordinal)
            elif not cell.split and cell.virtual is None:
                assert cell.parent is not None and cell.parent.virtual is not None
                virtual = first_unbound(cell.parent.virtual.children)
                assert virtual is not None
                bind(cell, virtual)

    def set_healthy(self, leaf: PhysicalCell) -> None:
        """Mark a device, and each ancestor without bad parts, as healthy; unbind those that are unused."""
        self.unsettled = True
        at: PhysicalCell | None = leaf
        while at is not None and not at.healthy and all(child.healthy for child in at.children):
            at.healthy = True
            if self.is_left(at):
                self.bad[at.level].discard(at.ordinal)
            elif at.virtual is not None and at.virtual.busy == 0 and not at.pinned:
                virtual = at.virtual
                if virtual.root is virtual:
                    self._undoom(at, virtual.vc)
                else:
                    unbind(at)
            at = at.parent

    def promote(self, root: VirtualCell) -> None:
        """Turn a doomed cell into a taken one, because a healthy part of it is used."""
        if root.physical is not None and not root.pinned_id:
            cells = self.doomed[root.vc][root.level]
            if root.physical.ordinal in cells:
                cells.remove(root.physical.ordinal)
                self.unsettled = True

    def settle(self) -> None:
        """Doom and release cells as the counts require, from the top level down: a change affects only lower levels."""
        if not self.unsettled:
            return
        for level in reversed(self.levels):
            for vc, unused in self.unused.items():
                doomed = self.doomed[vc][level]
                while unused[level] > self._healthy(level) and self._doom(vc, level):
                    pass
                while doomed and unused[level] < self._healthy(level):
                    self._undoom(self.chain.cells[level][doomed[0]], vc)
        self.unsettled = False

    def _healthy(self, level: int) -> int:
        return self.left[level] - len(self.bad[level])

    def _doom(self, vc: str, level: int) -> bool:
        virtual = first_unbound(self.owned[vc][level])
        cell = self._bad_cell(level) if virtual is not None else None
        if cell is None or virtual is None:
            return False
        bind(cell, virtual)
        insort(self.doomed[vc][level], cell.ordinal)
        self.take(cell, vc)
        return True

    def _undoom(self, cell: PhysicalCell, vc: str) -> None:
        self.doomed[vc][cell.level].remove(cell.ordinal)
        self.give_back(cell, vc)

    def _bad_cell(self, level: int) -> PhysicalCell | None:
        """Return a bad cell that is left, inside the smallest free cell; None if splitting would break a guarantee."""
        for upto in range(level, self.chain.top + 1):
            if not self._safe_to_split(level, upto):
                return None
            for cell in self.free[upto]:
                if not cell.healthy:
                    while cell.level > level:
                        cell = next(child for child in cell.children if not child.healthy)
                    return cell
        return None
