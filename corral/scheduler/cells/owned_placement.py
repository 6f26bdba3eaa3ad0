"""Place a gang in its owner's cells, binding more cells only when the bound ones are not enough."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import groupby

from msgspec import structs

from corral.model.input_bytes import InputBytes
from corral.model.placement import Placement
from corral.model.requests import GangRequest
from corral.scheduler.cells.cell_ownership import Cell, CellOwnership
from corral.scheduler.cells.cell_type import CellType
from corral.scheduler.cells.ownership_registry import SEPARATOR
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.placement.engine_request import EngineRequest
from corral.scheduler.placement.node_sharing import limited
from corral.scheduler.placement.search import Anchors, Search, Spot
from corral.scheduler.placement.shape import gang_shape
from corral.scheduler.placement.trial import Trial

_MOST_BOUND = 64
"""The most cells bound in one attempt before the gang is refused."""


def owner_of(trial: Trial, request: GangRequest) -> str:
    """Return the virtual cluster that guarantees a gang, or "" for none; opportunistic gangs have no guarantee."""
    ownership = trial.cluster.ownership
    if not ownership.cells or request.priority < 0:
        return ""
    return ownership.owner(request.queue)


def place_owned(trial: Trial, request: GangRequest, shape: Hashable | None = None) -> Placement | None:
    """Place a gang in its owner's cells, held and bound until undone; None if it does not fit there."""
    owner = owner_of(trial, request)
    if not owner or not any(role.devices.count or role.devices.ids for role in request.roles):
        return None
    if request.in_several_cells:
        return None
    shape = shape or gang_shape(request)
    if request.pinned_cell:
        return _place_pinned(trial, request, owner, shape)
    wanted = [[len(role.indexes) for role in request.roles]]
    least = [role.minimum for role in request.roles]
    if least != wanted[0] and any(least):
        wanted.append(least)
    for name, cells in trial.cluster.ownership.cells.items():
        index = cells.index
        anchors = trial.anchors(request, index)
        if index.unknown or owner not in cells.quotas or anchors is None:
            continue
        ask = trial.engine_request(request, index, shape, rdma=request.needs_rdma)
        for counts in wanted:
            spots = Owned(cells, owner, ask, anchors, request.inputs).place(counts)
            if spots:
                placement = trial.placement(request, index, ask, spots)
                return _claiming(name, cells, owner, placement)
    return None


def _place_pinned(trial: Trial, request: GangRequest, owner: str, shape: Hashable) -> Placement | None:
    """Place a gang in the pinned cell that it names; that cell is always bound to its owner."""
    found = trial.cluster.ownership.pinned(request.queue, request.pinned_cell)
    placement = trial.place(request, shape) if found is not None else None
    if found is None or placement is None:
        return None
    return _claiming(found[0], trial.cluster.ownership.cells[found[0]], owner, placement)


def place_best(trial: Trial, request: GangRequest, shape: Hashable | None = None) -> Placement | None:
    """Place a gang in its owner's cells, else as a guest wherever there is room."""
    return place_owned(trial, request, shape) or trial.place(request, shape)


def _claiming(engine: str, cells: CellOwnership, owner: str, placement: Placement) -> Placement:
    """Return the placement with each task's bound cells named, which makes the task guaranteed."""
    structure, position = cells.structure, cells.index.tree.position
    tasks = []
    for task in placement.tasks:
        mask = sum(1 << device for device in task.devices)
        found = sorted(cells.cells_at(owner, position[task.node], mask))
        names = tuple(f"{engine}{SEPARATOR}{structure.name(*cell)}" for cell in found)
        tasks.append(structs.replace(task, cells=names))
    return structs.replace(placement, tasks=tuple(tasks))


class Owned:
    """Places one gang in the cells of one owner on one engine."""

    def __init__(
        self, cells: CellOwnership, owner: str, ask: EngineRequest, anchors: Anchors, inputs: InputBytes | None = None
    ) -> None:
        """`inputs` break ties between places in cells that are bound already; they choose no cell to bind."""
        self.cells = cells
        self.inputs = inputs
        self.owner = owner
        self.ask = ask
        self.anchors = anchors
        self.index: EngineIndex = cells.index

    def place(self, counts: Sequence[int]) -> list[Spot] | None:
        """Find spots in cells bound to the owner, binding more if needed; on None nothing has changed."""
        own = self.cells.own[self.owner]
        found = self._in(own, counts) if self._may_hold(own, counts) else None
        found = found or self._in_new_cells(counts)
        if found or self._plainly_short(counts):
            return found
        return self._partly_in_new_cells(counts) or self._with_more_cells(counts)

    def _may_hold(self, view: EngineIndex, counts: Sequence[int]) -> bool:
        """Return whether a view has room for the tasks of each role by itself, ignoring topology."""
        if not self.index.tree.nodes or limited(self.index, self.ask):
            return True
        return all(int(view.slots(part.shape).totals[0][0]) >= counts[part.role] for part in self.ask.parts)

    def _plainly_short(self, counts: Sequence[int]) -> bool:
        """Return whether bound cells and all bindable cells together cannot have enough room, by counting alone.

        Counting works only if all bindable cells are at or above the node and room is all that matters; else it returns
        False.
        """
        kinds = list(self._kinds())
        if not self.index.tree.nodes or limited(self.index, self.ask):
            return False
        if any(kind.depth > self.index.tree.node_depth for kind in kinds):
            return False
        for part in self.ask.parts:
            shape = part.shape
            if not shape.devices or shape.share is not None:
                continue
            room = int(self.cells.own[self.owner].slots(shape).totals[0][0])
            for kind in kinds:
                more = self.cells.remaining(self.owner, kind) * self.cells.structure.devices(kind) // shape.devices
                room += min(more, int(self.cells.whole[kind, False].slots(shape).totals[0][0]))
            if room < counts[part.role]:
                return True
        return False

    def _in(self, view: EngineIndex, counts: Sequence[int]) -> list[Spot] | None:
        inputs = self.inputs if view is self.cells.own[self.owner] else None
        return Search(view, self.ask, self.anchors, inputs=inputs).place(counts)

    def _kinds(self) -> Iterator[CellType]:
        """Yield the types that the owner may bind more of, narrowest first, so that wide cells stay whole."""
        for kind in reversed(self.cells.types):
            if self.cells.remaining(self.owner, kind) > 0:
                yield kind

    def _ways(self, kind: CellType) -> tuple[bool, ...]:
        """Return the `unbroken` flags to try: first without breaking wider whole cells, then with it if it differs."""
        same = self.cells.whole[kind, True] is self.cells.whole[kind, False]
        return (True,) if same else (True, False)

    def _in_new_cells(self, counts: Sequence[int]) -> list[Spot] | None:
        """Place all of the gang in cells that are not bound yet, preferably without breaking a wider whole cell."""
        for kind in self._kinds():
            for unbroken in self._ways(kind):
                mark, bound = self.index.mark(), self.cells.mark()
                whole = self.cells.whole[kind, unbroken]
                spots = self._in(whole, counts) if self._may_hold(whole, counts) else None
                if spots and self._bind(kind, spots):
                    return spots
                self.index.undo(mark)
                self.cells.undo(bound)
        return None

    def _bind(self, kind: CellType, spots: Sequence[Spot]) -> bool:
        """Bind the cells that the spots are in; return whether all could be bound."""
        wanted = {
            cell
            for at, here in groupby(sorted(spots, key=lambda spot: spot.at), key=lambda spot: spot.at)
            for cell in self.cells.candidates_at(kind, at, _union(here))
        }
        return bool(wanted) and all(self.cells.bind(cell, self.owner) for cell in sorted(wanted))

    def _partly_in_new_cells(self, counts: Sequence[int]) -> list[Spot] | None:
        """Bind new cells, near each other, for the tasks that bound cells cannot hold; then place the gang in both."""
        if len(self.ask.parts) != 1:
            return None
        part = self.ask.parts[0]
        own = self.cells.own[self.owner]
        room = int(own.slots(part.shape).totals[0][0]) if self.index.tree.nodes else 0
        total = counts[part.role]
        if not 0 < room < total:
            return None
        for kind in self._kinds():
            more = total - room
            while more < total:
                for unbroken in self._ways(kind):
                    found = self._add(kind, counts, part.role, more, unbroken=unbroken)
                    if found:
                        return found
                more = min(total, more * 2) if more * 2 < total or more == total - 1 else total - 1
        return None

    def _add(self, kind: CellType, counts: Sequence[int], role: int, more: int, *, unbroken: bool) -> list[Spot] | None:
        mark, bound = self.index.mark(), self.cells.mark()
        partial = [more if at == role else 0 for at in range(len(counts))]
        spots = Search(self.cells.whole[kind, unbroken], self.ask).place(partial)
        self.index.undo(mark)
        if spots and self._bind(kind, spots):
            found = self._in(self.cells.own[self.owner], counts)
            if found:
                return found
        self.cells.undo(bound)
        return None

    def _with_more_cells(self, counts: Sequence[int]) -> list[Spot] | None:
        """Bind the emptiest cells one by one until the gang fits, then release those that it does not touch."""
        mark, bound = self.index.mark(), self.cells.mark()
        total = 0
        for cell in self._emptiest():
            if total >= _MOST_BOUND:
                break
            if not self.cells.bind(cell, self.owner):
                continue
            total += 1
            spots = self._in(self.cells.own[self.owner], counts)
            if not spots:
                continue
            touched = {cell for spot in spots for cell in self.cells.cells_at(self.owner, spot.at, spot.devices)}
            fresh = [cell for cell in self.cells.since(bound) if cell in touched]
            self.index.undo(mark)
            self.cells.undo(bound)
            if all(self.cells.bind(cell, self.owner) for cell in fresh):
                spots = self._in(self.cells.own[self.owner], counts)
                if spots:
                    return spots
            self.cells.undo(bound)
            return None
        self.cells.undo(bound)
        return None

    def _emptiest(self) -> list[Cell]:
        """Return the bindable cells with free devices, most free first, and the narrowest type on ties."""
        found: list[tuple[int, int, Cell]] = []
        for kind in self._kinds():
            for number in self.cells.structure.cells(kind):
                cell = Cell(kind.depth, number)
                if self.cells.is_whole(cell):
                    masks = self.cells.structure.masks(*cell)
                    free = sum((self.index.free[at] & mask).bit_count() for at, mask in masks)
                    if free:
                        found.append((-free, -kind.depth, cell))
        return [cell for _, _, cell in sorted(found)[: 4 * _MOST_BOUND]]


def _union(spots: Iterator[Spot]) -> int:
    mask = 0
    for spot in spots:
        mask |= spot.devices
    return mask
