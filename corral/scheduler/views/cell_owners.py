"""The owners of an engine's cells, and those by queue quotas; a planner may know others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from corral.kernel.ids import TaskKey
from corral.kernel.units import devices
from corral.model.queue_views import CellShare
from corral.scheduler.cells.cell_ownership import Cell, CellOwnership
from corral.scheduler.cells.cell_type import CellType
from corral.scheduler.cells.ownership_registry import SEPARATOR
from corral.scheduler.cluster.cluster import Cluster, Hold
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.views.cell_allotment import Claim, Kind, Whole, allotted


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


OwnersOf = Callable[[str], Owners | None]
"""Returns the owners of the cells of an engine by its name; None if there are none."""


def quota_owners(cluster: Cluster, engine: str) -> Owners | None:
    """Return the owners of an engine's cells by the quotas of queues, or None if there are none."""
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
