"""Cell types: cells of one depth are of one type if they consist of the same parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from corral.kernel.units import DEVICE
from corral.model.inventory import Device
from corral.scheduler.cluster.device_count import whole
from corral.scheduler.cluster.topology_level import resolve
from corral.scheduler.cluster.topology_tree import Tree


class CellType(NamedTuple):
    """The type of cells of one depth and structure; types sort widest first."""

    depth: int
    number: int


class Structure:
    """The cells of a tree at every depth, numbered in topology order, with their types and parts.

    At and above the node a cell is a range of positions; below it, a mask of one node's devices.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.node_depth = tree.node_depth
        self._starts: dict[int, list[int]] = {}
        """For each depth below the node, the number of the first cell of each node."""
        self._inner: dict[int, list[tuple[int, int]]] = {}
        """For each depth below the node, the position and mask of each cell."""
        self._types: dict[int, list[CellType]] = {}
        self._cells: dict[CellType, list[int]] = {}
        self._counts: dict[tuple[CellType, CellType], int] = {}
        self._sizes: dict[CellType, int] = {}
        self._by_name: dict[int, dict[str, int]] = {}
        self._written: dict[tuple[int, int], str] = {}
        self._ranges = [
            [range(start, end) for start, end in zip(cells.starts.tolist(), cells.ends.tolist(), strict=True)]
            for cells in tree.cells
        ]
        self._all = [layout.all for layout in tree.layouts]

    def find(self, level: str, model: str = "", chain: str = "") -> CellType | None:
        """Return the commonest type of a level's cells with only devices of the model and chain, or None."""
        depth = resolve(level, self.tree.levels)
        if depth is None:
            return None
        types = Counter(kind for number, kind in enumerate(self._typed(depth)) if self._is(depth, number, model, chain))
        usual = max(types.items(), key=lambda item: (item[1], -item[0].number), default=None)
        return usual[0] if usual else None

    def _is(self, depth: int, number: int, model: str, chain: str) -> bool:
        if not model and not chain:
            return True
        devices = list(self._devices(depth, number))
        return bool(devices) and all(
            (not model or device.model == model) and (not chain or device.chain == chain) for device in devices
        )

    def models(self, depth: int, number: int) -> Iterator[str]:
        """Yield the models of a cell's devices."""
        yield from (device.model for device in self._devices(depth, number))

    def _devices(self, depth: int, number: int) -> Iterator[Device]:
        for at, mask in self.masks(depth, number):
            yield from (device for device in self.tree.nodes[at].devices if mask >> device.index & 1)

    def type_of(self, depth: int, number: int) -> CellType:
        """Return the type of a cell."""
        return self._typed(depth)[number]

    def cells(self, kind: CellType) -> list[int]:
        """Return the numbers of the cells of a type."""
        found = self._cells.get(kind)
        if found is None:
            typed = self._typed(kind.depth)
            found = self._cells[kind] = [number for number, other in enumerate(typed) if other == kind]
        return found

    def count(self, wider: CellType, narrower: CellType) -> int:
        """Return how many cells of a narrower type a cell of a wider type contains."""
        key = (wider, narrower)
        if key not in self._counts:
            first = self.cells(wider)[0]
            inside = self.related(wider.depth, first, narrower.depth)
            self._counts[key] = sum(self.type_of(narrower.depth, number) == narrower for number in inside)
        return self._counts[key]

    def devices(self, kind: CellType) -> int:
        """Return how many devices a cell of a type has."""
        if kind not in self._sizes:
            first = next(iter(self.cells(kind)), None)
            masks = self.masks(kind.depth, first) if first is not None else ()
            self._sizes[kind] = sum(mask.bit_count() for _, mask in masks)
        return self._sizes[kind]

    def thousandths(self, kind: CellType) -> int:
        """Return the thousandths of devices in a cell of a type; slices do not count beside their parent device."""
        tree, first = self.tree, next(iter(self.cells(kind)), None)
        masks = self.masks(kind.depth, first) if first is not None else ()
        return sum(
            whole(tree.nodes[at].devices, mask) if at in tree.slice_conflicts else mask.bit_count() * DEVICE
            for at, mask in masks
        )

    def masks(self, depth: int, number: int) -> Sequence[tuple[int, int]]:
        """Return the node positions and device masks of a cell."""
        if depth > self.node_depth:
            return (self._inner_cells(depth)[number],)
        return [(at, self._all[at]) for at in self._range(depth, number)]

    def at_node(self, depth: int, at: int) -> Sequence[tuple[int, int]]:
        """Return the cells of a depth that contain a node or lie in it, as (cell number, mask of devices)."""
        if depth <= self.node_depth:
            return ((self.tree.cells[depth].of[at], self._all[at]),)
        self._inner_cells(depth)
        first = self._starts[depth][at]
        return list(enumerate(self.tree.layouts[at].depths[depth - self.node_depth], first))

    def related(self, depth: int, number: int, other: int) -> Iterator[int]:
        """Yield the cells of another depth that contain this one or lie in it; at its own depth, itself."""
        if other == depth:
            yield number
        elif other < depth:
            at = self._first(depth, number)
            if other <= self.node_depth:
                yield self.tree.cells[other].of[at]
            else:
                own = self._inner_cells(depth)[number][1]
                yield from (found for found, mask in self.at_node(other, at) if own & mask)
        elif other <= self.node_depth:
            of = self.tree.cells[other].of
            positions = self._range(depth, number)
            yield from range(of[positions[0]], of[positions[-1]] + 1)
        else:
            for at, mask in self.masks(depth, number):
                yield from (found for found, inner in self.at_node(other, at) if inner & mask)

    def range_at(self, depth: int, own: int, number: int) -> range:
        """Return the positions of the cell at `depth` that contains the cell `number` of depth `own`."""
        at = self._first(own, number)
        if depth >= self.node_depth:
            return range(at, at + 1) if own >= self.node_depth else self._range(own, number)
        return self._range(depth, self.tree.cells[depth].of[at])

    def name(self, depth: int, number: int) -> str:
        """Return a name from which `named` finds the cell again while its machines stay the same."""
        known = self._written.get((depth, number))
        if known is None:
            known = self._written[depth, number] = self._write(depth, number)
        return known

    def _write(self, depth: int, number: int) -> str:
        if depth <= self.node_depth:
            return f"{self.tree.levels[depth]}:{self.tree.cells[depth].names[number]}"
        at = self._inner_cells(depth)[number][0]
        return f"{self.tree.levels[depth]}:{self.tree.nodes[at].name}/{number - self._starts[depth][at]}"

    def named(self, name: str) -> tuple[int, int] | None:
        """Return the depth and number of the cell with this name, or None.

        Below the node, `LEVEL:NODE/2` is the third cell of the level, and `LEVEL:NODE/#8` the one with device 8.
        """
        level, _, rest = name.partition(":")
        if level not in self.tree.levels:
            return None
        depth = self.tree.levels.index(level)
        if depth <= self.node_depth:
            numbers = self._names(depth)
            return (depth, numbers[rest]) if rest in numbers else None
        node, _, offset = rest.rpartition("/")
        at = self.tree.position.get(node)
        if at is None or not offset.removeprefix("#").isdigit():
            return None
        masks = self.tree.layouts[at].depths[depth - self.node_depth]
        inside = len(masks)
        if offset.startswith("#"):
            bit = 1 << int(offset[1:])
            offset = str(next((number for number, mask in enumerate(masks) if mask & bit), inside))
        self._inner_cells(depth)
        return (depth, self._starts[depth][at] + int(offset)) if int(offset) < inside else None

    def _names(self, depth: int) -> dict[str, int]:
        if depth == self.node_depth:
            return self.tree.position
        found = self._by_name.get(depth)
        if found is None:
            names = self.tree.cells[depth].names
            found = self._by_name[depth] = {name: number for number, name in enumerate(names)}
        return found

    def _first(self, depth: int, number: int) -> int:
        """Return the first node position of a cell."""
        return self._inner_cells(depth)[number][0] if depth > self.node_depth else self._ranges[depth][number].start

    def _range(self, depth: int, number: int) -> range:
        return self._ranges[depth][number]

    def _inner_cells(self, depth: int) -> list[tuple[int, int]]:
        found = self._inner.get(depth)
        if found is None:
            found, starts = [], []
            for at, layout in enumerate(self.tree.layouts):
                starts.append(len(found))
                found += [(at, mask) for mask in layout.depths[depth - self.node_depth]]
            self._inner[depth], self._starts[depth] = found, starts
        return found

    def _typed(self, depth: int) -> list[CellType]:
        """Return the type of each cell of a depth; cells made of equal nodes, or of equal devices, share a type."""
        found = self._types.get(depth)
        if found is None:
            known: dict[object, CellType] = {}
            found = self._types[depth] = [
                known.setdefault(sign, CellType(depth, len(known))) for sign in self._signs(depth)
            ]
        return found

    def _signs(self, depth: int) -> Iterator[object]:
        alike, layouts = self.tree.alike, self.tree.layouts
        whole = [(alike[at], layouts[at].depths) for at in range(len(alike))]
        numbers: dict[object, int] = {}
        node = [numbers.setdefault(sign, len(numbers)) for sign in whole]
        if depth <= self.node_depth:
            for number in range(len(self.tree.cells[depth].names)):
                positions = self._range(depth, number)
                shape = tuple(
                    len({self.tree.cells[inner].of[at] for at in positions}) for inner in range(depth, self.node_depth)
                )
                yield (shape, tuple(sorted(Counter(node[at] for at in positions).items())))
            return
        for at, mask in self._inner_cells(depth):
            devices = sorted(
                (device.kind, device.model) for device in self.tree.nodes[at].devices if mask >> device.index & 1
            )
            inner = tuple(
                sum(bool(cell & mask) for cell in cells) for cells in layouts[at].depths[depth - self.node_depth :]
            )
            yield (tuple(devices), inner)
