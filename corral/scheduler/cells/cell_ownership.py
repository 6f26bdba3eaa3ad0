"""Track which virtual cluster owns and binds which cells of one engine.

The rules are HiveD's (Zhao et al., OSDI 2020, section 3). A cell is bound to its owner while a guaranteed gang of the
owner is in it; otherwise only a cell of that type is owed. A cell may be bound only while, for every type, as many
cells are left whole as all owners may still want (`left >= owed`). Cells of one type have equal structure, so any of
them will do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from corral.kernel.ids import JobId, TaskKey
from corral.model.queues import CellQuota
from corral.scheduler.cells.cell_type import CellType, Structure
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.masked_index import MaskedIndex


class Cell(NamedTuple):
    """A cell of an engine's tree: its depth, and its number among the cells of that depth."""

    depth: int
    number: int


class Bound:
    """A cell that is bound to an owner, with the tasks in it."""

    __slots__ = ("owner", "tasks")

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.tasks: set[tuple[JobId, TaskKey]] = set()


class CellOwnership:
    """The owned and bound cells of one engine; `owed` and `left` count cells by type."""

    def __init__(self, index: EngineIndex, quotas: Mapping[str, Iterable[CellQuota]]) -> None:
        self.index = index
        self.structure = Structure(index.tree)
        self.quotas: dict[str, dict[CellType, int]] = {}
        """For each owner, the number of cells of each type that it owns."""
        for owner, wanted in quotas.items():
            for quota in wanted:
                kind = self.structure.find(quota.level, quota.model, quota.chain)
                if kind is not None:
                    owned = self.quotas.setdefault(owner, {})
                    owned[kind] = owned.get(kind, 0) + quota.count
        self.types = sorted({kind for owned in self.quotas.values() for kind in owned})
        """The types that some owner owns cells of, widest first."""
        self.owed = Counter({kind: sum(owned.get(kind, 0) for owned in self.quotas.values()) for kind in self.types})
        """The number of cells of each type that owners may still bind."""
        self.left = Counter({kind: len(self.structure.cells(kind)) for kind in self.types})
        """The number of whole cells of each type: no part of them and no cell around them is bound."""
        self.bound: dict[Cell, Bound] = {}
        self._overlaps: Counter[Cell] = Counter()
        """For each cell of these types, the number of bound cells that overlap it."""
        self._used: dict[str, Counter[CellType]] = {owner: Counter() for owner in self.quotas}
        self._trail: list[Cell] = []
        self._inside: dict[Cell, MaskedIndex] = {}
        self.own = {owner: MaskedIndex(index) for owner in self.quotas}
        """For each owner, a view of the cells it has bound."""
        self._depths = sorted({kind.depth for kind in self.types})
        self.whole: dict[tuple[CellType, bool], MaskedIndex] = {}
        """Views of the bindable cells of a type; True excludes cells inside a wider whole cell (the buddy rule)."""
        for kind in self.types:
            self.whole[kind, False] = MaskedIndex(index)
            breaks = any(wider.depth < kind.depth for wider in self.types)
            self.whole[kind, True] = MaskedIndex(index) if breaks else self.whole[kind, False]
        for at in range(len(index.free)) if self.types else ():
            self._look(at)

    def inside(self, cell: Cell) -> MaskedIndex:
        """Return a view of one cell regardless of its binding; created once and kept up to date."""
        found = self._inside.get(cell)
        if found is None:
            found = self._inside[cell] = MaskedIndex(self.index)
            for at, mask in self.structure.masks(*cell):
                found.allow(at, mask)
            self.index.views.append(found)
        return found

    @property
    def views(self) -> Iterator[MaskedIndex]:
        """Yield all views that must follow changes of the engine."""
        yield from self.own.values()
        for (kind, unbroken), view in self.whole.items():
            if not unbroken or view is not self.whole[kind, False]:
                yield view

    def remaining(self, owner: str, kind: CellType) -> int:
        """Return how many more cells of a type an owner may bind."""
        quotas = self.quotas.get(owner)
        return quotas.get(kind, 0) - self._used[owner][kind] if quotas else 0

    def kind(self, cell: Cell) -> CellType:
        """Return the type of a cell."""
        return self.structure.type_of(*cell)

    def is_whole(self, cell: Cell) -> bool:
        """Return whether no bound cell overlaps a cell of an owned type."""
        return not self._overlaps[cell]

    # -- binding ------------------------------------------------------------------------------------------------------

    def bind(self, cell: Cell, owner: str) -> bool:
        """Bind a whole cell to an owner that is owed one, unless that breaks another guarantee; `undo` reverts it."""
        kind = self.kind(cell)
        if self._overlaps[cell] or self.remaining(owner, kind) <= 0:
            return False
        self._bind(cell, owner)
        self._trail.append(cell)
        if self.safe():
            return True
        self.undo(len(self._trail) - 1)
        return False

    def mark(self) -> int:
        """Return a point to `undo` to."""
        return len(self._trail)

    def since(self, mark: int) -> list[Cell]:
        """Return the cells bound since the mark."""
        return self._trail[mark:]

    def undo(self, mark: int) -> None:
        """Unbind everything bound since the mark."""
        while len(self._trail) > mark:
            self._unbind(self._trail.pop())

    def safe(self) -> bool:
        """Return whether every owner can still bind all that it is owed, in any order.

        Wider types take first; each wider cell takes its narrower cells with it.
        """
        return not self.shortfalls()

    def shortfalls(self) -> list[tuple[CellType, int, int]]:
        """Return the types with fewer cells left than owed, as (type, owed, left after wider types took theirs)."""
        out = []
        for kind in self.types:
            left = self.left[kind] - sum(
                self.owed[wider] * self.structure.count(wider, kind)
                for wider in self.types
                if wider != kind and wider.depth < kind.depth
            )
            if left < self.owed[kind]:
                out.append((kind, self.owed[kind], max(0, left)))
        return out

    def hold(self, cell: Cell, owner: str, job: JobId, task: TaskKey) -> bool:
        """Record that a task of the owner runs in this cell; False if the cell cannot be bound to the owner."""
        found = self.bound.get(cell)
        if found is None:
            if self._overlaps[cell] or self.remaining(owner, self.kind(cell)) <= 0:
                return False
            self._bind(cell, owner)
            found = self.bound[cell]
        if found.owner != owner:
            return False
        found.tasks.add((job, task))
        return True

    def release(self, cell: Cell, job: JobId, task: TaskKey) -> None:
        """Remove a task from this cell; the cell is unbound with its last task."""
        found = self.bound.get(cell)
        if found is not None:
            found.tasks.discard((job, task))
            if not found.tasks:
                self._unbind(cell)

    def _bind(self, cell: Cell, owner: str) -> None:
        self.bound[cell] = Bound(owner)
        kind = self.kind(cell)
        self._used[owner][kind] += 1
        self.owed[kind] -= 1
        self._overlap(cell, 1)
        self._show(cell, owner)

    def _unbind(self, cell: Cell) -> None:
        owner = self.bound.pop(cell).owner
        kind = self.kind(cell)
        self._used[owner][kind] -= 1
        self.owed[kind] += 1
        self._overlap(cell, -1)
        self._show(cell, owner)

    def _overlap(self, cell: Cell, sign: int) -> None:
        for depth in self._depths:
            for other in (cell,) if depth == cell.depth else self._related(cell, depth):
                was = self._overlaps[other]
                now = self._overlaps[other] = was + sign
                if not was or not now:
                    kind = self.kind(other)
                    if kind in self.left:
                        self.left[kind] -= sign

    def _related(self, cell: Cell, depth: int) -> Iterator[Cell]:
        return (Cell(depth, number) for number in self.structure.related(*cell, depth))

    def _show(self, cell: Cell, owner: str) -> None:
        """Update the views of nodes where the wholeness of cells may have changed."""
        own, binds = self.own[owner], cell in self.bound
        alone = self.whole[self.types[0], False] if len(self.types) == 1 else None
        for at, mask in self.structure.masks(*cell):
            own.allow(at, own.allowed[at] | mask if binds else own.allowed[at] & ~mask)
            if alone is not None:
                alone.allow(at, alone.allowed[at] & ~mask if binds else alone.allowed[at] | mask)
        if alone is None:
            for at in self.structure.range_at(min(self._depths[0], cell.depth), *cell):
                self._look(at)

    def _look(self, at: int) -> None:
        """Recompute which devices of a node could be bound, by type."""
        for kind in self.types:
            every = split = 0
            for number, mask in self.structure.at_node(kind.depth, at):
                cell = Cell(kind.depth, number)
                if self._overlaps[cell] or self.kind(cell) != kind:
                    continue
                every |= mask
                if not self._breaks(cell, at):
                    split |= mask
            self.whole[kind, False].allow(at, every)
            self.whole[kind, True].allow(at, split)

    def _breaks(self, cell: Cell, at: int) -> bool:
        """Return whether the cell lies inside a wider whole cell of an owned type."""
        for wider in self.types:
            if wider.depth < cell.depth:
                for number in self.structure.related(cell.depth, cell.number, wider.depth):
                    other = Cell(wider.depth, number)
                    if self.kind(other) == wider and not self._overlaps[other]:
                        return True
        return False

    # -- queries ------------------------------------------------------------------------------------------------------

    def cells_at(self, owner: str, at: int, devices: int) -> list[Cell]:
        """Return the owner's bound cells that contain any of these devices of a node."""
        return [
            Cell(depth, number)
            for depth in self._depths
            for number, mask in self.structure.at_node(depth, at)
            if mask & devices and (found := self.bound.get(Cell(depth, number))) is not None and found.owner == owner
        ]

    def candidates_at(self, kind: CellType, at: int, devices: int) -> list[Cell]:
        """Return the whole cells of a type that contain any of these devices of a node."""
        return [
            cell
            for number, mask in self.structure.at_node(kind.depth, at)
            if mask & devices and self.kind(cell := Cell(kind.depth, number)) == kind and not self._overlaps[cell]
        ]

    def columns(self) -> tuple[object, ...]:
        """Return everything bound and owed, for hashing and comparing."""
        bound = sorted((cell, found.owner, sorted(found.tasks)) for cell, found in self.bound.items())
        owed = [(kind, self.owed[kind], self.left[kind]) for kind in self.types]
        seen = [(view.allowed, view.free) for view in self.views]
        return (bound, owed, seen)
