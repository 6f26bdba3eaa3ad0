"""The owners of an engine's cells, by queue quotas or by HiveD, behind one interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from corral.kernel.ids import TaskKey
from corral.kernel.units import devices
from corral.model.queue_views import CellShare
from corral.scheduler.cells.cell_ownership import Cell, CellOwnership
from corral.scheduler.cells.cell_type import CellType
from corral.scheduler.cells.ownership_registry import SEPARATOR
from corral.scheduler.cluster.cluster import Cluster, Hold
from corral.scheduler.cluster.device_layout import indexes
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.planners.hived.algorithm.cells import PhysicalCell
from corral.scheduler.planners.hived.state_fold import Hived
from corral.scheduler.views.cell_allotment import Claim, Kind, Parts, Whole, allotted


class Owners(Protocol):
    """The owners of one engine's devices."""

    @property
    def bound(self) -> Mapping[str, list[int]]:
        """Return by queue and node position the devices in cells bound to the queue."""
        ...

    @property
    def pinned(self) -> Mapping[int, int]:
        """Return by node position the devices in pinned cells."""
        ...

    def guaranteed(self, gang: RunningGang, task: TaskKey, hold: Hold) -> bool:
        """Return whether a task is in cells of its queue."""
        ...

    def shares(self) -> Iterator[tuple[str, CellShare]]:
        """Yield the cells that each queue owns, by type."""
        ...

    def is_whole(self, depth: int, number: int, at: int) -> bool:
        """Return whether a cell could be bound to an owner of its type.

        Below the node, `number` counts within the node at position `at`.
        """
        ...


def owners_of(cluster: Cluster, engine: str) -> Owners | None:
    """Return the owners of an engine's cells, or None if there are none."""
    index = cluster.engines[engine]
    if cluster.hived is not None and cluster.hived.engine == engine:
        return HivedOwners(cluster.hived, index)
    cells = cluster.ownership.cells.get(engine)
    return QuotaOwners(engine, cells, cluster) if cells is not None else None


class QuotaOwners:
    """Owners by the quotas of their queues."""

    def __init__(self, engine: str, cells: CellOwnership, cluster: Cluster) -> None:
        self._engine = engine
        self._cells = cells
        self.bound = {owner: view.allowed for owner, view in cells.own.items()}
        self.pinned: dict[int, int] = {}
        for spec in cluster.queues.specs.values():
            for pinned in spec.pinned_cells:
                of_engine, _, name = pinned.partition(SEPARATOR)
                cell = cells.structure.named(name) if of_engine == engine else None
                for at, mask in cells.structure.masks(*cell) if cell else ():
                    self.pinned[at] = self.pinned.get(at, 0) | mask

    def guaranteed(self, gang: RunningGang, task: TaskKey, hold: Hold) -> bool:
        """Return whether the task's cells are named with its place."""
        return task in gang.cells

    def is_whole(self, depth: int, number: int, at: int) -> bool:
        """Return whether no bound cell overlaps it."""
        structure = self._cells.structure
        if depth > structure.node_depth:
            number += structure.at_node(depth, at)[0][0]
        cell = Cell(depth, number)
        return self._cells.kind(cell) in self._cells.types and self._cells.is_whole(cell)

    def shares(self) -> Iterator[tuple[str, CellShare]]:
        """Yield the cells that each queue owns, by type, widest type first."""
        return allotted(self._kinds())

    def _kinds(self) -> Iterator[Kind]:
        for kind in self._cells.types:
            structure, number = self._cells.structure, self._cells.structure.cells(kind)[0]
            models = set(structure.models(kind.depth, number))
            size = devices(structure.thousandths(kind))
            level, model = self._cells.index.tree.levels[kind.depth], next(iter(models)) if len(models) == 1 else ""
            claims = [
                Claim(owner, quotas[kind], self._cells.remaining(owner, kind))
                for owner, quotas in sorted(self._cells.quotas.items())
                if quotas.get(kind)
            ]
            yield Kind(CellShare(self._engine, level, model, size, 0), claims, self._whole(kind))

    def _whole(self, kind: CellType) -> Iterator[Whole]:
        """Yield the whole cells of a type."""
        index, structure = self._cells.index, self._cells.structure
        for number in structure.cells(kind):
            if self._cells.is_whole(Cell(kind.depth, number)):
                parts = tuple(structure.masks(kind.depth, number))
                wanted = sum(mask.bit_count() for _, mask in parts)
                free = sum((index.free[at] & mask).bit_count() for at, mask in parts)
                held = sum((index.held[at] & mask).bit_count() for at, mask in parts)
                yield Whole(held, parts, wanted - free - held)


class HivedOwners:
    """Owners by HiveD's bound virtual cells; a device belongs to its nearest bound cell."""

    def __init__(self, hived: Hived, index: EngineIndex) -> None:
        self._hived = hived
        self._forest = hived.algorithm.state.forest
        self.bound: dict[str, list[int]] = {name: [0] * len(index.free) for name in self._forest.tenants}
        self.pinned: dict[int, int] = {}
        for (node, device), leaf in self._forest.devices.items():
            at = index.tree.position.get(f"{hived.engine}/{node}")
            owner = _owner(leaf)
            if at is None or not owner:
                continue
            self.bound[owner][at] |= 1 << device
            if any(cell.pinned for cell in _upwards(leaf)):
                self.pinned[at] = self.pinned.get(at, 0) | 1 << device

    def guaranteed(self, gang: RunningGang, task: TaskKey, hold: Hold) -> bool:
        """Return whether all of its devices are bound."""
        node = hold.node.removeprefix(f"{self._hived.engine}/")
        leaves = (self._forest.devices.get((node, device)) for device in indexes(hold.devices))
        return all(leaf is not None and leaf.virtual is not None for leaf in leaves)

    def is_whole(self, depth: int, number: int, at: int) -> bool:
        """Return False, because HiveD's levels are not those of the tree."""
        return False

    def shares(self) -> Iterator[tuple[str, CellShare]]:
        """Yield owned cells by chain and level, widest first; pinned cells count among their level's."""
        return allotted(self._kinds())

    def _kinds(self) -> Iterator[Kind]:
        for name, chain in self._forest.chains.items():
            for kind in reversed(chain.levels[1:]):
                claims = []
                for owner, tenant in sorted(self._forest.tenants.items()):
                    roots = tenant.owned[name][kind.number] if name in tenant.owned else []
                    roots = roots + [root for root in tenant.pinned.values() if root.kind == kind]
                    if roots:
                        claims.append(Claim(owner, len(roots), sum(root.physical is None for root in roots)))
                whole = (
                    Whole(cell.busy, _parts(cell), 0 if cell.healthy else kind.leaves)
                    for cell in chain.cells[kind.number]
                    if not _owner(cell) and not _split(cell)
                )
                yield Kind(CellShare(self._hived.engine, kind.type, chain.leaf_type, kind.leaves, 0), claims, whole)


def _parts(cell: PhysicalCell) -> Parts:
    found: dict[int | str, int] = {}
    for leaf in cell.leaves():
        found[leaf.nodes[0]] = found.get(leaf.nodes[0], 0) | 1 << leaf.device
    return tuple(found.items())


def _upwards(cell: PhysicalCell) -> Iterator[PhysicalCell]:
    at: PhysicalCell | None = cell
    while at is not None:
        yield at
        at = at.parent


def _owner(cell: PhysicalCell) -> str:
    """Return the virtual cluster that a cell, or its nearest bound ancestor, is bound to; "" for none."""
    return next((each.virtual.vc for each in _upwards(cell) if each.virtual is not None), "")


def _split(cell: PhysicalCell) -> bool:
    """Return whether any part of a cell is bound."""
    return any(child.virtual is not None or _split(child) for child in cell.children)
