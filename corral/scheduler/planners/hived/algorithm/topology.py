"""Choose the nodes and devices of a gang, packed onto few nodes and close together.

The same search runs on a virtual cluster's cells (packing all priorities together, because a high one can preempt
without losing locality) and on all physical cells for opportunistic gangs (packing them together, away from guaranteed
ones). Source: HiveD's topology-aware intra-VC scheduler. HiveD searches device sets by backtracking. It ends with the
first set, in device order, among those of the lowest common ancestor; counting finds that set in one pass.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Generic, TypeVar, cast

from corral.scheduler.planners.hived.algorithm.cells import FREE, LEAF, OPPORTUNISTIC, Cell, PhysicalCell, VirtualCell

C = TypeVar("C", bound=PhysicalCell | VirtualCell)
Rank = tuple[int, int, int]
"""The sort key of a node, tried smallest first; the last item is the node's position in the configuration."""


class RankedNodes(Generic[C]):
    """The nodes that one search chooses from; an owned cell smaller than a node counts as a node of its own.

    The nodes are kept ranked: they report when their counts change, and only those are ranked again.
    """

    def __init__(self, roots: Sequence[C], *, pack_all: bool) -> None:
        nodes: list[C] = []
        for root in roots:
            if root.kind.reaches_node:
                nodes.extend(_nodes_of(root))
        small = [root for root in roots if not root.kind.reaches_node]
        self.nodes: list[C] = nodes + sorted(small, key=lambda root: -root.level)
        self._rank = _packing if pack_all else _separating
        self._largest = max((node.kind.leaves for node in self.nodes), default=0)
        self._place: dict[Cell, int] = {node: at for at, node in enumerate(self.nodes)}
        self._ranks: list[Rank] = [(*self._rank(node), at) for at, node in enumerate(self.nodes)]
        self._ranked = sorted(self._ranks)
        self._changed: set[Cell] = set()
        for node in self.nodes:
            node.watchers = (*node.watchers, self._changed)

    def twin(self, twins: Mapping[Cell, C], changed: set[Cell]) -> RankedNodes[C]:
        """Return the same view of the twin cells, which report to `changed`."""
        made: RankedNodes[C] = object.__new__(type(self))
        made.nodes = [twins[node] for node in self.nodes]
        made._rank, made._largest = self._rank, self._largest
        made._place = {node: at for at, node in enumerate(made.nodes)}
        made._ranks, made._ranked, made._changed = self._ranks[:], self._ranked[:], changed
        return made

    @property
    def changed(self) -> set[Cell]:
        """Return the nodes whose counts changed since they were last ranked."""
        return self._changed

    def place(self, sizes: list[int], priority: int, suggested: Set[str] | None) -> tuple[list[list[C]] | None, str]:
        """Return the devices of each pod (`sizes` ascending), or None and the reason.

        `suggested` None means every node. The first try is without preemption; in the second, devices used at a lower
        priority count as free.
        """
        self._rank_changed()
        chosen, reason = self._choose(sizes, OPPORTUNISTIC, suggested)
        if chosen is None and priority > OPPORTUNISTIC:
            chosen, reason = self._choose(sizes, priority, suggested)
        else:
            priority = OPPORTUNISTIC
        if chosen is None:
            return None, reason
        available: dict[C, list[C]] = {}
        placed = []
        for size, node in zip(sizes, chosen, strict=True):
            if node not in available:
                available[node] = _available(node, priority)
            picked = nearest(available[node], size)
            taken = set(picked)
            available[node] = [leaf for leaf in available[node] if leaf not in taken]
            placed.append(picked)
        return placed, ""

    def _rank_changed(self) -> None:
        for node in self._changed:
            at = self._place[node]
            rank: Rank = (*self._rank(node), at)
            if rank != self._ranks[at]:
                self._ranked.pop(bisect_left(self._ranked, self._ranks[at]))
                insort(self._ranked, rank)
                self._ranks[at] = rank
        self._changed.clear()

    def _choose(self, sizes: list[int], priority: int, suggested: Set[str] | None) -> tuple[list[C] | None, str]:
        """Choose a node for each pod in one pass over the nodes, fullest first, without returning to a node."""
        chosen: list[C] = []
        unusable: C | None = None
        for at in range(self._first_with_room(sizes[0], priority), len(self._ranked)):
            node = self.nodes[self._ranked[at][2]]
            room = node.kind.leaves - _used_from(node, priority)
            if room < sizes[len(chosen)]:
                continue
            if not _usable(node, suggested):
                unusable = unusable or node
                continue
            while room >= sizes[len(chosen)]:
                room -= sizes[len(chosen)]
                chosen.append(node)
                if len(chosen) == len(sizes):
                    return chosen, ""
        if unusable is not None:
            return None, _unusable(unusable)
        return None, "insufficient capacity"

    def _first_with_room(self, size: int, priority: int) -> int:
        """Return the first rank to look at; without preemption, nodes too full for the smallest pod are skipped."""
        if self._rank is not _packing or priority > OPPORTUNISTIC:
            return 0
        return bisect_left(self._ranked, (size - self._largest, 0, 0))


def _nodes_of(cell: C) -> Iterator[C]:
    if cell.kind.above_node:
        for child in cell.children:
            yield from _nodes_of(cast(C, child))
    else:
        yield cell


def _packing(node: Cell) -> tuple[int, int]:
    return -node.busy, 0


def _separating(node: Cell) -> tuple[int, int]:
    mine = node.used.get(OPPORTUNISTIC, 0)
    return -mine, node.busy - mine


def _used_from(node: Cell, priority: int) -> int:
    """Return the number of devices in use at `priority` or above."""
    if priority <= OPPORTUNISTIC:
        return node.busy
    return sum(count for at, count in node.used.items() if at >= priority)


def _physical(node: PhysicalCell | VirtualCell) -> PhysicalCell | None:
    return node if isinstance(node, PhysicalCell) else node.physical


def _usable(node: PhysicalCell | VirtualCell, suggested: Set[str] | None) -> bool:
    cell = _physical(node)
    return cell is None or (cell.healthy and (suggested is None or cell.nodes[0] in suggested))


def _unusable(node: PhysicalCell | VirtualCell) -> str:
    cell = _physical(node)
    assert cell is not None
    return f"have to use at least one {'non-suggested' if cell.healthy else 'bad'} node {cell.address}"


def _available(node: C, priority: int) -> list[C]:
    """Return the devices of a node that `priority` may use: free ones first, then those to preempt."""
    leaves = cast(list[C], list(node.leaves()))
    return [leaf for leaf in leaves if not leaf.busy] + [leaf for leaf in leaves if FREE < leaf.priority < priority]


def nearest(available: list[C], size: int) -> list[C]:
    """Return the first `size` of `available` inside one cell of the lowest level that contains that many."""
    if size == 1:
        return available[:1]
    above: list[Cell] = list(available)
    for _ in range(LEAF, 64):
        inside = Counter(above)
        for cell in above:
            if inside[cell] >= size:
                return [leaf for leaf, parent in zip(available, above, strict=True) if parent is cell][:size]
        above = [cell.parent if cell.parent is not None else cell for cell in above]
    raise AssertionError(f"a node was chosen for {size} devices and has {len(available)}")
