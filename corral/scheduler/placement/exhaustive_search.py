"""Search exhaustively for a place for roles that compete for the same nodes.

The quick search takes the tightest node first and may miss the only fit. After it failed, and only where the sums of
free resources allow a fit, all divisions of the roles' tasks over the nodes are tried. The work is bounded, so small
gangs are answered exactly and large ones may be missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from corral.scheduler.placement.engine_request import Batch, EngineRequest, EngineRole
from corral.scheduler.placement.node_fit import WHOLE

if TYPE_CHECKING:
    from corral.scheduler.placement.search import Search

_MOST_STEPS = 3_000
_MOST_NODES = 64
"""The most nodes in a cell; above it the quick search is rarely wrong and the bounded tries would not reach far."""

Parts = Sequence[tuple[EngineRole, tuple[Batch, ...]]]


def place_anyhow(search: Search, ask: EngineRequest, parts: Parts) -> bool:
    """Place a gang that the quick search failed on; False if there is no place or none was found in time."""
    if not _simple(search, ask, parts):
        return False
    tries = _Tries(search, ask.required, [(part, batch) for part, batches in parts for batch in batches])
    return tries.place()


def _simple(search: Search, ask: EngineRequest, parts: Parts) -> bool:
    """Return whether several roles compete and only the nodes matter to them."""
    node = search.node_depth
    batches = [batch for _, of_part in parts for batch in of_part]
    if len(batches) < 2 or search.anchors.job or ask.required > node:
        return False
    return all(part.required <= node for part, _ in parts) and all(
        batch.size == 1 and batch.depth <= node for batch in batches
    )


class _Tries:
    """Divides the tasks of one role after another over the nodes of a cell."""

    def __init__(self, search: Search, required: int, batches: Sequence[tuple[EngineRole, Batch]]) -> None:
        self.search = search
        self.required = required
        """The depth of the cell that all roles share."""
        self.batches = batches
        self.left = _MOST_STEPS
        self._most_skew: int | None = None
        """The bound on the skew of roles that are spread as evenly as possible; None: no bound."""
        self._skews: dict[int, int] = {}
        """The skew of each such role in the division that was tried last."""

    def place(self) -> bool:
        """Place all roles; those without a bound on the skew as evenly as further tries, within their bound, achieve."""
        mark, spots = self.search.index.mark(), len(self.search.spots)
        if not self._somewhere():
            return False
        left = _MOST_STEPS
        while skew := max(self._skews.values(), default=0):
            del self.search.spots[spots:]
            self.search.index.undo(mark)
            self._most_skew, self.left = skew - 1, left
            if not self._somewhere():
                self._most_skew, self.left = skew, _MOST_STEPS
                return self._somewhere()
            left = self.left
        return True

    def _somewhere(self) -> bool:
        """Place all roles in the first cell that holds them."""
        cells = self.search.tree.cells[self.required]
        return any(
            self.part(0, int(start), int(end))
            for start, end in zip(cells.starts, cells.ends, strict=True)
            if end - start <= _MOST_NODES and self.may_hold(int(start), int(end))
        )

    def may_hold(self, start: int, end: int) -> bool:
        """Return whether the sums of free resources in a cell permit a fit."""
        index = self.search.index
        shapes = [(batch.shape, batch.blocks) for _, batch in self.batches]
        columns = ((index.cpu, "cpu"), (index.memory, "memory"), (index.shm, "shm"), (index.tasks, ""))
        for column, name in columns:
            wanted = sum(count * (getattr(shape, name) if name else 1) for shape, count in shapes)
            if wanted > sum(max(0, each) for each in column[start:end]):
                return False
        whole = sum(shape.devices * count for shape, count in shapes if shape.share is None)
        free = sum(mask.bit_count() for mask in index.free[start:end])
        room = all(int(np.sum(self.search.room_of(batch).room[start:end])) >= batch.blocks for _, batch in self.batches)
        return room and whole <= free

    def part(self, number: int, start: int, end: int) -> bool:
        """Place the roles from index `number` on inside the nodes of a cell."""
        if number == len(self.batches):
            return True
        part, batch = self.batches[number]
        depth = part.required
        cells = self.search.tree.cells[depth]
        for cell in range(cells.of[start], cells.of[end - 1] + 1):
            first, last = max(start, int(cells.starts[cell])), min(end, int(cells.ends[cell]))
            if self._divide(number, (start, end), (first, last), first, batch.blocks):
                return True
        return False

    def _divide(self, number: int, outer: tuple[int, int], scope: tuple[int, int], at: int, tasks: int) -> bool:
        """Place `tasks` tasks of a role on its nodes from position `at` on, then the remaining roles."""
        part, batch = self.batches[number]
        if not tasks:
            return self._even(part, scope) and self.part(number + 1, *outer)
        slots = self.search.room_of(batch)
        if int(np.sum(slots.room[at : scope[1]])) < tasks:
            return False
        for count in range(min(slots.measure(self.search.index, at), tasks), -1, -1):
            for within in self._choices(number, at, count):
                self.left -= 1
                if self.left < 0:
                    return False
                mark, spots = self.search.index.mark(), len(self.search.spots)
                if self.search.put(at, count, batch, within) and self._divide(
                    number, outer, scope, at + 1, tasks - count
                ):
                    return True
                del self.search.spots[spots:]
                self.search.index.undo(mark)
        return False

    def _choices(self, number: int, at: int, count: int) -> Iterator[int]:
        """Yield the device masks to take from: first all devices, then every choice that matters to other roles."""
        yield WHOLE
        shape = self.batches[number][1].shape
        if not shape.devices or shape.ids or not count:
            return
        kinds = self._kinds(number, at)
        if len(kinds) < 2:
            return
        if shape.share is not None:
            for size in range(1, len(kinds)):
                yield from (sum(chosen) for chosen in combinations(kinds, size))
            return
        for counts in _divisions(count * shape.devices, [mask.bit_count() for mask in kinds]):
            yield sum(_lowest(mask, few) for mask, few in zip(kinds, counts, strict=True))

    def _kinds(self, number: int, at: int) -> list[int]:
        """Return the devices that a role could use on a node, grouped by which other roles they suit."""
        index, node = self.search.index, self.search.tree.nodes[at]
        masks = [self.search.room_of(batch).masks[at] for _, batch in self.batches]
        sharing = any(batch.shape.share for _, batch in self.batches)
        used = index.shared.at.get(at, {})
        found: dict[tuple[object, ...], int] = {}
        for device in node.devices:
            free = index.free[at] >> device.index & 1 or (sharing and device.index in used)
            if free and masks[number] >> device.index & 1:
                suits = tuple(mask >> device.index & 1 for mask in masks)
                conflicts = device.parent if device.parent >= 0 else self._sliced(at, device.index)
                memory = device.memory_bytes if sharing else 0
                key = (suits, conflicts, memory, used.get(device.index))
                found[key] = found.get(key, 0) | 1 << device.index
        return list(found.values())

    def _sliced(self, at: int, device: int) -> int:
        """Return the device itself if it can be sliced, so that it forms its own group; else -1."""
        return device if device in self.search.tree.slice_conflicts.get(at, {}) else -1

    def _even(self, part: EngineRole, scope: tuple[int, int]) -> bool:
        """Return whether a spread role is spread as evenly as required."""
        if not part.spread:
            return True
        cells = self.search.tree.cells[part.spread]
        counts = Counter(cells.of[spot.at] for spot in self.search.spots if spot.role == part.role)
        found = [counts[cell] for cell in self.search.open_cells(part, *scope)]
        if part.topology.bounded:
            return part.topology.even(found)
        self._skews[part.role] = max(found) - min(found)
        return self._most_skew is None or self._skews[part.role] <= self._most_skew


def _divisions(total: int, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield every way to take `total` items of several kinds, at most `most[i]` of kind i."""
    if not most:
        if not total:
            yield ()
        return
    for first in range(min(total, most[0]), -1, -1):
        for rest in _divisions(total - first, most[1:]):
            yield (first, *rest)


def _lowest(mask: int, count: int) -> int:
    """Return the lowest `count` bits of a mask."""
    out = 0
    for _ in range(count):
        out |= (mask ^ out) & -(mask ^ out)
    return out
