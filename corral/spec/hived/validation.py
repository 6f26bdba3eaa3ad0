"""Validate HiveD's configuration: types, addresses, pinned cells, and quotas of virtual clusters.

HiveD starts with invalid cells and fails later. The quota check walks each chain from the top, as HiveD's check at
start does: the cells left at a level, times the children of each, are the cells of the next level. Unlike HiveD, it
first takes out pinned cells where they stand. Two pinned devices in two nodes break two nodes, which the plain count
does not see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from corral.spec.errors import Path, describe, did_you_mean

if TYPE_CHECKING:
    from corral.spec.hived.configuration import HivedCellType, HivedCluster, HivedPhysicalCell

Finding = tuple[Path, str]
"""The path of the error, and its message."""

MAX_DEPTH = 32
"""Maximum levels of nested cells."""
MAX_LEAVES = 1_000_000
"""Maximum devices of a cluster."""
_CELLS: Path = ("physicalCluster", "physicalCells")
_TYPES: Path = ("physicalCluster", "cellTypes")


@dataclass
class _Census:
    """Addresses, devices and pinned cells found while walking the physical cells."""

    devices: dict[tuple[str, int], Path] = field(default_factory=dict)
    addresses: dict[tuple[str, str], Path] = field(default_factory=dict)
    pinned: dict[str, tuple[Path, tuple[int, ...], str, int]] = field(default_factory=dict)
    """By id: the path, the indexes from the top to the cell, its chain, its depth below the top."""
    tops: Counter[str] = field(default_factory=Counter)


def types_below(cell_types: Mapping[str, HivedCellType], top: str) -> list[str]:
    """The types of a chain from `top` down to its leaf; raises ValueError when they form a cycle."""
    names = [top]
    while names[-1] in cell_types:
        below = cell_types[names[-1]].child_cell_type
        if below in names or len(names) > MAX_DEPTH:
            raise ValueError(" > ".join([*names, below]))
        names.append(below)
    return names


def findings(cluster: HivedCluster) -> list[Finding]:
    """All errors of `cluster`; later rules are checked only when the earlier ones hold."""
    types = cluster.physical_cluster.cell_types
    found = list(_bad_types(types))
    if found:
        return found
    census = _Census()
    for index, cell in enumerate(cluster.physical_cluster.physical_cells):
        found += _bad_top(types, cell, index)
    if found:
        return found
    leaves = sum(_leaves(types, cell.cell_type) for cell in cluster.physical_cluster.physical_cells)
    if leaves > MAX_LEAVES:
        return [(_CELLS, f"{leaves} devices; a cluster has at most {MAX_LEAVES}")]
    for index, cell in enumerate(cluster.physical_cluster.physical_cells):
        census.tops[cell.cell_type] += 1
        walk = _Walk(types, types_below(types, cell.cell_type), census)
        found += walk.cell(cell, 0, (*_CELLS, index), (census.tops[cell.cell_type] - 1,), "", "", index)
    found += _bad_tenants(cluster, census)
    return found or list(_shortfalls(cluster, census))


def _leaves(types: Mapping[str, HivedCellType], name: str) -> int:
    count = 1
    for each in types_below(types, name)[:-1]:
        count *= types[each].child_cell_number
        if count > MAX_LEAVES:
            break
    return count


def _bad_types(types: Mapping[str, HivedCellType]) -> Iterator[Finding]:
    for name in types:
        path = (*_TYPES, name)
        try:
            below = types_below(types, name)
        except ValueError as circle:
            yield (*path, "childCellType"), f"the type contains itself: {circle}"
            continue
        nodes = [each for each in below if each in types and types[each].is_node_level]
        if types[name].is_node_level and len(nodes) > 1:
            yield (*path, "isNodeLevel"), f"a node inside a node: {' > '.join(nodes)}"


def _bad_top(types: Mapping[str, HivedCellType], cell: HivedPhysicalCell, index: int) -> Iterator[Finding]:
    path = (*_CELLS, index, "cellType")
    if not cell.cell_type:
        yield path, "missing; a cell at the top names its type"
    elif cell.cell_type not in types:
        yield path, f"no cell type is called {describe(cell.cell_type)}{did_you_mean(cell.cell_type, types)}"
    elif not any(types[each].is_node_level for each in types_below(types, cell.cell_type)[:-1]):
        yield path, f"{describe(cell.cell_type)} has no node; it, or a type inside it, must have isNodeLevel: true"


@dataclass
class _Walk:
    """Checks one cell at the top and all cells below it."""

    types: Mapping[str, HivedCellType]
    names: list[str]
    census: _Census

    def cell(
        self, cell: HivedPhysicalCell | None, depth: int, path: Path, place: tuple[int, ...], prefix: str, node: str,
        default: int, pinned: bool = False,
    ) -> Iterator[Finding]:  # fmt: skip
        """Errors of one cell and the cells below it.

        `default` is its running number among cells of its type, and its address when it has none.
        """
        name, chain = self.names[depth], self.names[0]
        address = (cell.cell_address if cell else "") or str(default)
        if cell is not None:
            yield from self._named(cell, name, depth, path, place, pinned)
            pinned = pinned or bool(cell.pinned_cell_id)
        if "/" in address:
            yield (*path, "cellAddress"), f"{describe(address)} has a '/', which parts the addresses of cells"
        kind = self.types.get(name)
        if kind is not None and kind.is_node_level:
            if cell is None or not cell.cell_address:
                yield (*path, "cellAddress"), f"missing; a node ({describe(name)}) has its node's name for address"
                return
            node, default = address, 0
        full = f"{prefix}/{address}" if prefix else address
        if (chain, full) in self.census.addresses:
            yield (*path, "cellAddress"), f"the address {describe(full)} is there twice in chain {describe(chain)}"
            return
        self.census.addresses[chain, full] = path
        if kind is None:
            yield from self._device(path, node, address)
            return
        children: list[HivedPhysicalCell] = cell.cell_children if cell else []
        if children and len(children) != kind.child_cell_number:
            yield (
                (*path, "cellChildren"),
                f"{describe(name)} has {kind.child_cell_number} children, and {len(children)} are described",
            )
            return
        for index in range(kind.child_cell_number):
            yield from self.cell(
                children[index] if children else None, depth + 1, (*path, "cellChildren", index), (*place, index),
                full, node, default * kind.child_cell_number + index, pinned,
            )  # fmt: skip

    def _named(
        self, cell: HivedPhysicalCell, name: str, depth: int, path: Path, place: tuple[int, ...], pinned: bool
    ) -> Iterator[Finding]:
        if cell.cell_type and cell.cell_type != name:
            yield (*path, "cellType"), f"expected {describe(name)}, its parent's child type, got {cell.cell_type!r}"
        if cell.cell_children and name not in self.types:
            yield (*path, "cellChildren"), f"{describe(name)} is a leaf, one device, and has no children"
        if not cell.pinned_cell_id:
            return
        if pinned:
            yield (*path, "pinnedCellId"), "a cell inside a pinned cell cannot be pinned again"
        elif cell.pinned_cell_id in self.census.pinned:
            yield (*path, "pinnedCellId"), f"{describe(cell.pinned_cell_id)} is there twice; it names one cell"
        else:
            self.census.pinned[cell.pinned_cell_id] = (path, place, self.names[0], depth)

    def _device(self, path: Path, node: str, address: str) -> Iterator[Finding]:
        at = (*path, "cellAddress")
        if not (address.isascii() and address.isdigit() and len(address) < 7):
            yield at, f"expected the index of a device, got {describe(address)}"
        elif (node, int(address)) in self.census.devices:
            yield at, f"device {int(address)} of node {describe(node)} is there twice; a device is in one cell"
        else:
            self.census.devices[node, int(address)] = path


def _bad_tenants(cluster: HivedCluster, census: _Census) -> Iterator[Finding]:
    types = cluster.physical_cluster.cell_types
    owner: dict[str, str] = {}
    for name, tenant in cluster.virtual_clusters.items():
        base: Path = ("virtualClusters", name)
        for index, owned in enumerate(tenant.virtual_cells):
            path = (*base, "virtualCells", index, "cellType")
            message = _bad_dotted(types, census, owned.cell_type)
            if message:
                yield path, message
        for index, pin in enumerate(tenant.pinned_cells):
            path = (*base, "pinnedCells", index, "pinnedCellId")
            known = pin.pinned_cell_id
            if known not in census.pinned:
                yield path, f"no physical cell is pinned as {describe(known)}{did_you_mean(known, census.pinned)}"
            elif known in owner:
                yield path, f"{describe(known)} belongs to virtual cluster {describe(owner[known])} already"
            owner.setdefault(known, name)


def _bad_dotted(types: Mapping[str, HivedCellType], census: _Census, dotted: str) -> str:
    chain, *inner = dotted.split(".")
    if chain not in census.tops:
        return f"no physical cell at the top is of type {describe(chain)}{did_you_mean(chain, census.tops)}"
    below = types_below(types, chain)
    for above, name in zip([chain, *inner], inner, strict=False):
        if name not in below:
            return f"no cell type of chain {describe(chain)} is called {describe(name)}{did_you_mean(name, below)}"
        if below.index(name) != below.index(above) + 1:
            return f"{describe(name)} is not the child type of {describe(above)}"
    return ""


def _shortfalls(cluster: HivedCluster, census: _Census) -> Iterator[Finding]:
    """The first level of each chain at which virtual clusters own more cells than there are, with the numbers."""
    types = cluster.physical_cluster.cell_types
    pins = {pin.pinned_cell_id for tenant in cluster.virtual_clusters.values() for pin in tenant.pinned_cells}
    for chain, tops in census.tops.items():
        below = types_below(types, chain)
        places = [place for known, (_, place, of, _) in census.pinned.items() if of == chain and known in pins]
        wanted: Counter[str] = Counter()
        for tenant in cluster.virtual_clusters.values():
            for owned in tenant.virtual_cells:
                if owned.cell_type.split(".")[0] == chain:
                    wanted[owned.cell_type.split(".")[-1]] += owned.cell_number
        available = tops
        for depth, name in enumerate(below):
            broken = {place[: depth + 1] for place in places if len(place) > depth}
            above = {place[:depth] for place in places if len(place) > depth}
            if depth:
                arity = types[below[depth - 1]].child_cell_number
                available = available * arity + len(above) * arity
            available -= len(broken)
            if wanted[name] > available:
                pinned = f", {sum(len(place) == depth + 1 for place in places)} more pinned" if places else ""
                yield (
                    ("virtualClusters",),
                    f"the virtual clusters own {wanted[name]} cells of type {name} in chain {chain}{pinned},"
                    f" and {available} are there for them",
                )
                break
            available -= wanted[name]
