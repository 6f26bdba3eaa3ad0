"""Place a gang completely or not at all, in the narrowest cell that holds it, the tightest such cell first.

The search goes from scope to scope (the job, its roles, their blocks). For each scope it tries the cells of the deepest
level that could hold it, then wider ones, but never wider than required. It takes resources on the index itself, so
that the roles see each other; a cell that fails is undone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.model.input_bytes import InputBytes
from corral.scheduler.cluster.allocation import DeviceFraction, Neighbour, allocation_of
from corral.scheduler.cluster.device_fraction import FractionSlots
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.shape_slots import Slots
from corral.scheduler.placement.engine_request import Batch, EngineRequest, EngineRole
from corral.scheduler.placement.exhaustive_search import place_anyhow
from corral.scheduler.placement.input_locality import InputLocality, nearer_to_inputs
from corral.scheduler.placement.model_choice import model_choices
from corral.scheduler.placement.node_fit import WHOLE
from corral.scheduler.placement.node_sharing import LimitedSlots, Limits, limited, neighbours
from corral.scheduler.placement.shape import TaskShape
from corral.scheduler.placement.task_block import Blocks, Home, home_of, place_in_block_cell
from corral.scheduler.placement.topology_spread import evenly

Room = Slots | LimitedSlots


class Domain(NamedTuple):
    """A cell of the tree: the nodes in [start, end), and inside a node only the devices in `within`."""

    depth: int
    start: int
    end: int
    within: int = WHOLE


class Spot(NamedTuple):
    """Where one task would run; tasks of one block have the same `block` number within their role."""

    role: int
    block: int
    at: int
    devices: int
    part: DeviceFraction | None = None
    """The part of its one device, if it does not have the whole."""


class Anchors(NamedTuple):
    """The nodes of the gang's running tasks; tasks that join must share their cells."""

    job: tuple[int, ...] = ()
    roles: tuple[tuple[int, ...], ...] = ()
    running: tuple[tuple[int, ...], ...] = ()
    """For each role, the node position of each of its running tasks."""
    blocks: tuple[Blocks | None, ...] = ()
    """For each role, the blocks of its tasks, where these are not simply consecutive."""

    def running_of(self, role: int) -> tuple[int, ...]:
        """Return the node position of each running task of this role."""
        return self.running[role] if self.running else ()

    def of(self, role: int) -> tuple[int, ...]:
        """Return the node positions where tasks of this role run."""
        return self.roles[role] if self.roles else ()


NOWHERE = Anchors()
"""The anchors of a gang that joins nothing."""


class Scope(NamedTuple):
    """The widest cell that something must be in, and the narrowest cells in which it is tried."""

    required: int
    preferred: int
    spread: int
    """The depth of the cells that it is spread over, so that narrower cells are not tried; 0 means no spreading."""
    near: tuple[int, ...]

    def deepest(self, node_depth: int) -> int:
        """Return the depth of the narrowest cells to try."""
        if self.spread:
            return max(self.required, min(self.preferred, self.spread - 1))
        return max(self.required, self.preferred, node_depth)


class Search:
    """Places one gang on one engine."""

    def __init__(
        self,
        index: EngineIndex,
        ask: EngineRequest,
        anchors: Anchors = NOWHERE,
        job: str = "",
        inputs: InputBytes | None = None,
    ) -> None:
        """`inputs` break ties between equally good places."""
        self.index = index
        self.inputs = inputs
        self._locality: InputLocality | None = None
        self.ask = ask
        self.anchors = anchors
        self.job = job
        self.tree = index.tree
        self.node_depth = index.tree.node_depth
        self.spots: list[Spot] = []
        self._block = 0
        self._limits = Limits(index, ask, job, anchors.job, self.spots) if limited(index, ask) else None
        self._views: dict[Slots, LimitedSlots] = {}
        self._neighbours: tuple[Neighbour, ...] = neighbours(ask, job)

    def place(self, counts: Sequence[int]) -> list[Spot] | None:
        """Find spots for `counts[role]` tasks of each role and take them on the index; on None nothing is taken."""
        if self.inputs is None:
            return self._find(counts)
        mark = self.index.mark()
        spots = self._find(counts)
        return nearer_to_inputs(self, self.inputs, counts, spots, mark) if spots else spots

    def place_by(self, locality: InputLocality, counts: Sequence[int]) -> list[Spot] | None:
        """The same as `place`, with ties broken by the bytes of inputs."""
        self._locality = locality
        try:
            return self._find(counts)
        finally:
            self._locality = None

    def order_key(self, part: EngineRole, at: int) -> int:
        """Return what a node is ordered by for single tasks of a part; equal ones are ordered by position."""
        return self._of(part.shape).sync(self.index).order_key(at)

    def _find(self, counts: Sequence[int]) -> list[Spot] | None:
        if self.ask.unknown_level or not self.tree.nodes:
            return None
        self.spots.clear()
        self._block = 0
        for ask in model_choices(self.index, self.ask):
            mark = self.index.mark() if self.anchors.blocks else 0
            if (not self.anchors.blocks or place_in_block_cell(self, ask, counts)) and self._place(ask, counts):
                return self.spots[:]
            if self.anchors.blocks:
                self.spots.clear()
                self.index.undo(mark)
        return None

    def put_in_block_cell(self, part: EngineRole, tasks: int, block: int, home: Home) -> bool:
        """Put tasks into the cell where the rest of their block runs; False, with nothing taken, if they do not fit."""
        batch = Batch(part.role, part.shape, tasks, 1, self.node_depth)
        for start, end, within, _ in home.cells(self.tree, part.group_depth):
            cell, mark, first = Domain(part.group_depth, start, end, within), self.index.mark(), len(self.spots)
            if self._holds(cell, [batch]) and self._spread(cell, self._of(part.shape), tasks, batch):
                self.spots[first:] = [spot._replace(block=home_of(block)) for spot in self.spots[first:]]
                return True
            del self.spots[first:]
            self.index.undo(mark)
        return False

    def fits_block_cell(self, part: EngineRole, tasks: int, home: Home) -> bool:
        """Return whether this many tasks fit into the cell where the rest of their block runs."""
        mark, first = self.index.mark(), len(self.spots)
        fits = not tasks or self.put_in_block_cell(part, tasks, 0, home)
        del self.spots[first:]
        self.index.undo(mark)
        return fits

    def _batches(self, part: EngineRole, count: int) -> tuple[Batch, ...]:
        blocks = self.anchors.blocks[part.role] if self.anchors.blocks else None
        return blocks.batches(part, count) if blocks else part.batches(count, self.node_depth)

    def _place(self, ask: EngineRequest, counts: Sequence[int]) -> bool:
        """Place the gang as one of its model variants asks."""
        parts = [(part, self._batches(part, counts[part.role])) for part in ask.parts]
        batches = [batch for _, of_part in parts for batch in of_part]
        if not batches:
            return True
        if any(int(self._room(batch, 0)[0]) < batch.blocks for batch in batches):
            return False
        everything = Domain(0, 0, len(self.tree.nodes))
        required, preferred, spread = ask.required, ask.preferred, _widest_spread(ask.parts)
        if len(parts) == 1:
            part = parts[0][0]
            required, preferred = max(required, part.required), max(preferred, part.preferred)
            near = self.anchors.job or self.anchors.of(part.role)
            scope = Scope(required, preferred, spread, near)
            if len(batches) == 1 and self._on_tightest_node(scope, batches[0]):
                return True
            return self._scope(everything, scope, batches, lambda cell: self._fill(cell, part, batches))
        scope = Scope(required, preferred, spread, self.anchors.job)
        if self._scope(everything, scope, batches, lambda cell: self._roles(cell, parts)):
            return True
        return place_anyhow(self, ask, parts)

    def _on_tightest_node(self, scope: Scope, batch: Batch) -> bool:
        """Put single tasks on the tightest node that holds all of them, if no narrower cell has to be tried first."""
        node = self.node_depth
        if scope.near or batch.size > 1 or batch.depth != node or scope.deepest(node) != node:
            return False
        slots = self._slots(batch)
        at = self._tightest(slots, batch.blocks, 0, len(self.tree.nodes))
        if at < 0 or not self._on_node(at, WHOLE, slots, batch.blocks, batch, sure=True):
            return False
        self._number(len(self.spots) - batch.blocks, 1, mixed=True)
        return True

    def _roles(self, cell: Domain, parts: Sequence[tuple[EngineRole, tuple[Batch, ...]]]) -> bool:
        return all(
            self._scope(
                cell,
                Scope(part.required, part.preferred, part.spread, self.anchors.of(part.role)),
                batches,
                lambda inner, part=part, batches=batches: self._fill(inner, part, batches),  # type: ignore[misc]
            )
            for part, batches in parts
            if batches
        )

    def _scope(
        self,
        outer: Domain,
        scope: Scope,
        batches: Sequence[Batch],
        inner: Callable[[Domain], bool],
    ) -> bool:
        """Try the cells inside `outer`, deepest level first, not wider than required, until `inner` finds room."""
        deepest = max(scope.deepest(self.node_depth), outer.depth)
        for depth in range(deepest, max(scope.required, outer.depth) - 1, -1):
            for cell in self._cells(outer, depth, batches, scope):
                mark, spots, block = self.index.mark(), len(self.spots), self._block
                if inner(cell):
                    return True
                del self.spots[spots:]
                self.index.undo(mark)
                self._block = block
        return False

    def _cells(self, outer: Domain, depth: int, batches: Sequence[Batch], scope: Scope) -> Iterator[Domain]:
        """Yield the cells at `depth` inside `outer` that have room for each batch by itself, tightest first."""
        near = scope.near
        if depth <= outer.depth:
            if self._holds(outer, batches) and self._near(outer, near):
                yield outer
        elif depth > self.node_depth:
            yield from self._device_cells(outer, depth, batches, scope)
        elif near:
            yield from self._anchored_cells(outer, depth, batches, near)
        elif depth == self.node_depth and len(batches) == 1 and batches[0].depth >= depth:
            batch = batches[0]
            for at in self._tightest_first(self._slots(batch), batch.blocks, outer.start, outer.end):
                yield Domain(depth, at, at + 1)
        else:
            cells = self.tree.cells[depth]
            first, last = cells.of[outer.start], cells.of[outer.end - 1] + 1
            room = [self._room(batch, depth)[first:last] for batch in batches]
            fits = np.ones(last - first, dtype=bool)
            for batch, found in zip(batches, room, strict=True):
                fits &= found >= batch.blocks
            chosen = np.flatnonzero(fits)
            if room:
                if self._locality is None:
                    chosen = chosen[np.argsort(room[0][chosen], kind="stable")]
                else:
                    held = self._locality.cells(depth)[first:last]
                    chosen = chosen[np.lexsort((-held[chosen], room[0][chosen]))]
            for cell in chosen.tolist():
                yield Domain(depth, int(cells.starts[first + cell]), int(cells.ends[first + cell]))

    def _tightest(self, slots: Room, blocks: int, start: int, end: int) -> int:
        """Return the node in [start, end) that comes first of those that hold `blocks`, or -1."""
        if self._locality is None:
            return slots.tightest(blocks, start, end)
        return self._locality.tightest(slots, blocks, start, end)

    def _tightest_first(self, slots: Room, blocks: int, start: int, end: int) -> Iterable[int]:
        """Return all nodes in [start, end) that hold `blocks`, in the order in which they are tried."""
        if self._locality is None:
            return slots.tightest_first(blocks, start, end)
        return self._locality.tightest_first(slots, blocks, start, end)

    def _anchored_cells(
        self, outer: Domain, depth: int, batches: Sequence[Batch], near: tuple[int, ...]
    ) -> Iterator[Domain]:
        """Yield only the cell that the running tasks share, or at node depth each node that they run on."""
        cells = self.tree.cells[depth]
        shared = sorted({cells.of[at] for at in near})
        if depth < self.node_depth and len(shared) > 1:
            return
        for cell in shared:
            domain = Domain(depth, int(cells.starts[cell]), int(cells.ends[cell]))
            if outer.start <= domain.start and domain.end <= outer.end and self._holds(domain, batches):
                yield domain

    def _device_cells(self, outer: Domain, depth: int, batches: Sequence[Batch], scope: Scope) -> Iterator[Domain]:
        """Yield cells inside nodes, the fullest that still hold the batches first; levels need not be nested."""
        first = batches[0]
        if first.depth < self.node_depth:
            first = first._replace(depth=self.node_depth)
        for at in self._tightest_first(self._slots(first), first.blocks, outer.start, outer.end):
            if scope.near and at not in scope.near:
                continue
            free = self.index.free[at] & outer.within
            levels = self.tree.layouts[at].depths
            masks = levels[depth - self.node_depth]
            if depth > scope.required > self.node_depth:
                around = levels[scope.required - self.node_depth]
                masks = tuple(mask & cell for cell in around for mask in masks if mask & cell)
            for mask in sorted((mask & outer.within for mask in masks), key=lambda mask: (free & mask).bit_count()):
                cell = Domain(depth, at, at + 1, mask)
                if self._holds(cell, batches):
                    yield cell

    def _near(self, cell: Domain, near: tuple[int, ...]) -> bool:
        return all(cell.start <= at < cell.end for at in near)

    def _holds(self, cell: Domain, batches: Sequence[Batch]) -> bool:
        """Return whether each batch by itself has room in the cell."""
        for batch in batches:
            if cell.depth > self.node_depth:
                slots = self._slots(batch, inside=cell.depth)
                room = slots.measure(self.index, cell.start, cell.within)
            elif cell.depth == self.node_depth:
                room = int(self._slots(batch, inside=cell.depth).room[cell.start])
            else:
                room = int(self._room(batch, cell.depth)[self.tree.cells[cell.depth].of[cell.start]])
            if room < batch.blocks:
                return False
        return True

    def _slots(self, batch: Batch, inside: int = 0) -> Room:
        """Return the room per node for a batch, ignoring a block constraint that the cell at `inside` already meets."""
        depth = max(batch.depth, self.node_depth)
        if inside >= depth:
            depth = self.node_depth
        return self._of(batch.shape, batch.size, depth - self.node_depth)

    def _of(self, shape: TaskShape, size: int = 1, depth: int = 0) -> Room:
        """Return the room for blocks of a shape on the nodes that this gang may use."""
        slots = self.index.slots(shape, size, depth)
        if self._limits is None:
            return slots
        view = self._views.get(slots)
        if view is None:
            view = self._views[slots] = LimitedSlots(slots, self._limits)
        return view.sync(self.index)

    def _room(self, batch: Batch, depth: int) -> NDArray[np.int64]:
        """Return how many blocks of a batch fit in each cell at an upper `depth`, each inside a cell of its level."""
        if batch.depth >= self.node_depth:
            return self._slots(batch).totals[depth]
        tasks = self._of(batch.shape).totals[max(batch.depth, depth)] // batch.size
        if depth >= batch.depth:
            return tasks
        inner = self.tree.cells[batch.depth].of
        return np.add.reduceat(tasks, [inner[start] for start in self.tree.cells[depth].starts.tolist()])

    def _fill(self, cell: Domain, part: EngineRole, batches: Sequence[Batch]) -> bool:
        """Put the batches of one role into a cell."""
        if part.spread > cell.depth:
            return all(self._spread_over(cell, part, batch) for batch in batches)
        for batch in batches:
            if batch.depth >= self.node_depth or cell.depth >= batch.depth:
                if not self._spread(cell, self._block_slots(cell, batch), batch.blocks, batch):
                    return False
                continue
            if not all(self._block_in(cell, batch._replace(blocks=1)) for _ in range(batch.blocks)):
                return False
        return True

    def _spread_over(self, cell: Domain, part: EngineRole, batch: Batch) -> bool:
        """Divide tasks over the cells of the part's spread level as evenly as possible.

        Returns False if they do not fit or exceed the allowed skew. Only cells with a working node that would take such
        a task count.
        """
        slots = self._of(batch.shape)
        cells = self.tree.cells[part.spread]
        first, last = cells.of[cell.start], cells.of[cell.end - 1] + 1
        open_to = self.open_cells(part, cell.start, cell.end)
        there = Counter(cells.of[at] for at in self.anchors.running_of(part.role))
        room = {at: int(slots.totals[part.spread][at]) for at in range(first, last) if at in open_to}
        counts = evenly(room, {at: there[at] for at in room}, batch.blocks)
        if counts is None:
            return False
        if not part.topology.even([counts[at] + there[at] for at in room]):
            return False
        mark = len(self.spots)
        for at, count in counts.items():
            inner = Domain(part.spread, int(cells.starts[at]), int(cells.ends[at]))
            if count and not self._descend(inner, slots, count, batch):
                return False
        self._number(mark, 1, mixed=True)
        return True

    def open_cells(self, part: EngineRole, start: int, end: int) -> set[int]:
        """Return the cells of the part's spread level that have a working node in the range for such a task."""
        cells, masks = self.tree.cells[part.spread], self.index.slots(part.shape).masks
        return {cells.of[at] for at in range(start, end) if masks[at] and self.index.usable[at]}

    def room_of(self, batch: Batch) -> Room:
        """Return the room for the tasks of a batch one by one, on the nodes that this gang may use."""
        return self._of(batch.shape)

    def put(self, at: int, tasks: int, batch: Batch, within: int) -> bool:
        """Take room on one node for tasks of a batch, placed one by one, with devices in `within`."""
        if not tasks:
            return True
        mark = len(self.spots)
        if not self._on_node(at, within, self._of(batch.shape), tasks, batch):
            return False
        self._number(mark, 1, mixed=True)
        return True

    def _block_slots(self, cell: Domain, batch: Batch) -> Room:
        """Return room for single tasks where the cell itself keeps a block together, else room for whole blocks."""
        if cell.depth >= batch.depth:
            return self._of(batch.shape)
        return self._slots(batch)

    def _block_in(self, outer: Domain, block: Batch) -> bool:
        """Put one block into one cell of its level."""
        slots, scope = self._of(block.shape), Scope(block.depth, 0, 0, ())
        return self._scope(outer, scope, [block], lambda cell: self._spread(cell, slots, 1, block))

    def _spread(self, cell: Domain, slots: Room, blocks: int, batch: Batch) -> bool:
        """Divide blocks over the cells below, few and close together; False if they do not fit."""
        wanted = blocks * batch.size if slots.size == 1 else blocks
        first_spot = len(self.spots)
        if not self._descend(cell, slots, wanted, batch):
            return False
        self._number(first_spot, batch.size, mixed=slots.size == 1)
        return True

    def _descend(self, cell: Domain, slots: Room, wanted: int, batch: Batch) -> bool:
        if cell.depth >= self.node_depth:
            return self._on_node(cell.start, cell.within, slots, wanted, batch)
        slots.sync(self.index)
        at = self._tightest(slots, wanted, cell.start, cell.end)
        if at >= 0:
            return self._on_node(at, WHOLE, slots, wanted, batch, sure=True)
        depth = cell.depth + 1
        cells = self.tree.cells[depth]
        first, last = cells.of[cell.start], cells.of[cell.end - 1] + 1
        room = slots.totals[depth][first:last].copy()
        while wanted:
            holding = np.flatnonzero(room >= wanted)
            child = int(holding[room[holding].argmin()]) if len(holding) else int(room.argmax())
            if self._locality is not None:
                child = self._locality.nearest(depth, first, room, child)
            count = min(wanted, int(room[child]))
            if not count:
                return False
            room[child] = 0
            at = int(cells.starts[first + child])
            if depth == self.node_depth:
                self._on_node(at, WHOLE, slots, count, batch, sure=True)
            elif not self._descend(Domain(depth, at, int(cells.ends[first + child])), slots, count, batch):
                return False
            wanted -= count
        return True

    def _on_node(self, at: int, within: int, slots: Room, wanted: int, batch: Batch, *, sure: bool = False) -> bool:
        """Take room on one node; `sure` means that up-to-date slots already show enough room."""
        index, shape = self.index, slots.shape
        if not sure and slots.measure(index, at, within) < wanted:
            return False
        tasks = wanted * slots.size
        parts: list[DeviceFraction] = []
        if shape.share is not None:
            given = slots.slots if isinstance(slots, LimitedSlots) else slots
            assert isinstance(given, FractionSlots)
            parts = given.give_blocks(index, at, within, wanted)
            masks = [1 << part.device for part in parts]
        elif not shape.devices:
            masks = [0] * tasks
        elif shape.ids:
            masks = [slots.masks[at]]
        else:
            free = index.free[at] & slots.masks[at] & within
            blocks = self.tree.layouts[at].allot(free, wanted, slots.size, shape.devices, slots.depth)
            masks = [mask for block in blocks for mask in block]
        if parts:
            self.spots.extend(Spot(batch.role, 0, at, 1 << part.device, part) for part in parts)
        else:
            self.spots.extend(Spot(batch.role, 0, at, mask) for mask in masks)
        exclusive, whole = self.ask.sharing.exclusive, 0 if parts else sum(masks)
        index.take(allocation_of(shape, at, whole, tasks, tuple(parts), self._neighbours, exclusive=exclusive))
        return True

    def _number(self, first: int, size: int, *, mixed: bool) -> None:
        """Number the blocks of the last spots; with `mixed`, consecutive tasks form the blocks."""
        fresh = self.spots[first:]
        if mixed and len(fresh) > 1:
            fresh.sort(key=lambda spot: (spot.at, spot.devices & -spot.devices))
        for i, spot in enumerate(fresh):
            self.spots[first + i] = Spot(spot.role, self._block + i // size, spot.at, spot.devices, spot.part)
        self._block += -(-len(fresh) // size)


def _widest_spread(parts: Sequence[EngineRole]) -> int:
    """Return the widest level that any of the parts is spread over; 0 if none is."""
    return min((part.spread for part in parts if part.spread), default=0)
