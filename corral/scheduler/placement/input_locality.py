"""Break ties between equally good places by the bytes of a gang's inputs that their nodes and racks hold.

The search places the gang without looking at its inputs, then once more with ties broken by them. The second place is
taken only if it is as good as the first in every other respect. So inputs never decide whether a gang fits, and never
cost it closeness or the cluster room. A gang without located inputs pays nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.model.input_bytes import InputBytes, locality_note

if TYPE_CHECKING:
    from corral.scheduler.cluster.shape_slots import Slots
    from corral.scheduler.cluster.topology_tree import Tree
    from corral.scheduler.placement.node_sharing import LimitedSlots
    from corral.scheduler.placement.search import Search, Spot

_TRIES: Final = 3
"""Places that are compared with the first one; after each, the nodes that made it worse are left out."""


class InputLocality:
    """The bytes of one gang's inputs in the cells of one engine."""

    def __init__(self, tree: Tree, inputs: InputBytes, without: Collection[int] = ()) -> None:
        """`without` are node positions whose bytes are left out."""
        self.tree = tree
        self._sets: list[tuple[frozenset[int], int]] = []
        for holders, size in inputs.held:
            places = (tree.position.get(node) for node in holders)
            if found := frozenset(at for at in places if at is not None and at not in without):
                self._sets.append((found, size))
        self._cells: dict[int, NDArray[np.int64]] = {}
        self._ranks: list[int] = []

    def __bool__(self) -> bool:
        """Whether any node of the engine holds bytes."""
        return bool(self._sets)

    def cells(self, depth: int) -> NDArray[np.int64]:
        """Return the bytes that each cell at an upper `depth` holds; a copy in the same cell counts once."""
        found = self._cells.get(depth)
        if found is None:
            of = self.tree.cells[depth].of
            found = self._cells[depth] = np.zeros(len(self.tree.cells[depth].names), dtype=np.int64)
            for places, size in self._sets:
                for cell in {of[at] for at in places}:
                    found[cell] += size
        return found

    def near(self, places: Collection[int]) -> tuple[int, ...]:
        """Return the bytes in the cells of these nodes: first of the nodes, then of the racks, then of wider cells."""
        found = []
        for depth in range(self.tree.node_depth, 0, -1):
            of = self.tree.cells[depth].of
            cells = {of[at] for at in places}
            found.append(sum(size for holders, size in self._sets if any(of[at] in cells for at in holders)))
        return tuple(found)

    def tightest(self, slots: Slots | LimitedSlots, blocks: int, start: int, end: int) -> int:
        """Return the first of `tightest_first`, or -1."""
        for _, equal in groupby(slots.tightest_first(blocks, start, end), key=slots.order_key):
            return min(equal, key=self._node_ranks().__getitem__)
        return -1

    def tightest_first(self, slots: Slots | LimitedSlots, blocks: int, start: int, end: int) -> list[int]:
        """Return the nodes in the order of the slots; of those that are equal there, those with more bytes first."""
        ranks, found = self._node_ranks(), list[int]()
        for _, equal in groupby(slots.tightest_first(blocks, start, end), key=slots.order_key):
            found += sorted(equal, key=ranks.__getitem__)
        return found

    def nearest(self, depth: int, first: int, room: NDArray[np.int64], chosen: int) -> int:
        """Return the cell with the most bytes of those with as much room as the `chosen` one; the first on ties.

        `room` is that of the cells at `depth` from the number `first` on.
        """
        equal = np.flatnonzero(room == room[chosen])
        return int(equal[self.cells(depth)[first + equal].argmax()])

    def _node_ranks(self) -> list[int]:
        """By node position, its rank by its own bytes, then by those of its rack, then of wider cells."""
        if not self._ranks:
            tree = self.tree
            keys = [self.cells(depth)[list(tree.cells[depth].of)] for depth in range(1, tree.node_depth + 1)]
            order = np.lexsort([np.arange(len(tree.nodes)), *(-key for key in keys)])
            ranks = np.empty(len(order), dtype=np.int64)
            ranks[order] = np.arange(len(order))
            self._ranks = ranks.tolist()
        return self._ranks


class _Quality(NamedTuple):
    """What a place is worth without regard to inputs."""

    cells: tuple[int, ...]
    """The number of cells of each upper level that the whole gang, and each role, touches."""
    nodes: list[tuple[object, ...]]
    """Of each node the tasks of each role there, and how it was ordered before the gang was placed."""
    inside: tuple[int, ...]
    """Inside nodes: how deep and how well linked the devices of tasks, and of all tasks of a node, are."""

    def as_good_as(self, other: _Quality) -> bool:
        """Return whether nothing is worse than in the other place."""
        deeper = all(mine >= theirs for mine, theirs in zip(self.inside, other.inside, strict=True))
        return deeper and self.cells == other.cells and self.nodes == other.nodes


def nearer_to_inputs(
    search: Search, inputs: InputBytes, counts: Sequence[int], first: list[Spot], mark: int
) -> list[Spot]:
    """Return an equally good place for the gang that holds more of its inputs, or the first one if there is none.

    `first` is held on the index since `mark`; what is returned is held instead.
    """
    index, left_out = search.index, set[int]()
    everything = InputLocality(index.tree, inputs)
    held = index.taken(mark)
    best_near = everything.near(_places(first))
    for _ in range(_TRIES):
        locality = InputLocality(index.tree, inputs, left_out)
        if not locality:
            return first
        index.undo(mark)
        base = _quality(search, first)
        spots = search.place_by(locality, counts)
        mine = index.taken(mark)
        index.undo(mark)
        if spots is not None and everything.near(_places(spots)) > best_near:
            if _quality(search, spots).as_good_as(base):
                for allocation in mine:
                    index.take(allocation)
                return spots
            left_out |= _places(spots) - _places(first)
        for allocation in held:
            index.take(allocation)
        if spots is None or not left_out:
            return first
    return first


def placement_note(tree: Tree, inputs: InputBytes, nodes: Collection[str]) -> str:
    """The sentence of how much of a gang's inputs is on its nodes and in their racks; "" if no node holds any."""
    places = {tree.position[node] for node in nodes if node in tree.position}
    locality = InputLocality(tree, inputs)
    if not locality or not places:
        return ""
    on_nodes, *wider = (min(inputs.total, size) for size in locality.near(places))
    return locality_note(inputs, on_nodes, wider[0] if wider else on_nodes)


def _places(spots: Sequence[Spot]) -> set[int]:
    return {spot.at for spot in spots}


def _quality(search: Search, spots: Sequence[Spot]) -> _Quality:
    """Judge a place; nothing of it may be held on the index."""
    tree, of_role = search.tree, Counter((spot.at, spot.role) for spot in spots)
    members = [[*search.anchors.job, *_places(spots)]]
    members += [[spot.at for spot in spots if spot.role == part.role] for part in search.ask.parts]
    cells = tuple(
        len({tree.cells[depth].of[at] for at in places})
        for places in members
        for depth in range(1, tree.node_depth + 1)
    )
    nodes: list[tuple[object, ...]] = []
    unions: dict[int, int] = {}
    for spot in spots:
        unions[spot.at] = unions.get(spot.at, 0) | spot.devices
    for at in unions:
        here = ((part, of_role[at, part.role]) for part in search.ask.parts)
        nodes.append(tuple((part.role, tasks, search.order_key(part, at)) for part, tasks in here if tasks))
    layouts = tree.layouts
    inside = (
        sum(layouts[spot.at].narrowest(spot.devices) for spot in spots),
        sum(layouts[at].narrowest(union) for at, union in unions.items()),
        sum(layouts[spot.at].link_sum(spot.devices) for spot in spots),
        sum(layouts[at].link_sum(union) for at, union in unions.items()),
    )
    return _Quality(cells, sorted(nodes), inside)
