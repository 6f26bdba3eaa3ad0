"""Build the physical and virtual cell forests from a description, with HiveD's addresses and indexes.

A physical address is the path of its parts (`3/1.0.0.2/0/1`). A virtual one is the virtual cluster, the number of the
owned cell, and for each level the number inside that owned cell (`VC1/0/1/3`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from corral.kernel.errors import InvalidInput
from corral.scheduler.planners.hived.algorithm.cells import LEAF, Level, PhysicalCell, VirtualCell
from corral.spec.hived.configuration import HivedCluster, HivedPhysicalCell, HivedVirtualCluster
from corral.spec.hived.validation import types_below


@dataclass
class Chain:
    """All cells under one top type; `levels` and `cells` are indexed by level number, and index 0 is unused."""

    name: str
    levels: list[Level]
    cells: list[list[PhysicalCell]]

    @property
    def top(self) -> int:
        """Return the number of the highest level."""
        return len(self.levels) - 1

    @property
    def leaf_type(self) -> str:
        """Return the cell type of its devices."""
        return self.levels[LEAF].type

    def level_of(self, cell_type: str) -> int:
        """Return the level whose cells are of this type, or 0 if none is."""
        return next((level.number for level in self.levels[LEAF:] if level.type == cell_type), 0)


@dataclass
class Tenant:
    """The cells that a virtual cluster owns, by chain and level, and by pinned id."""

    name: str
    roots: dict[str, list[VirtualCell]] = field(default_factory=dict)
    """Its owned cells by chain, in the order of the configuration."""
    owned: dict[str, list[list[VirtualCell]]] = field(default_factory=dict)
    """The same cells by chain and level."""
    pinned: dict[str, VirtualCell] = field(default_factory=dict)


@dataclass
class Forest:
    """The parts that are built once: the chains in the order of search, the tenants, and the devices."""

    chains: dict[str, Chain]
    tenants: dict[str, Tenant]
    pins: dict[str, PhysicalCell]
    devices: dict[tuple[str, int], PhysicalCell]
    on_node: dict[str, list[PhysicalCell]]
    """The devices of each node, over all chains."""
    chains_of: dict[str, list[str]]
    """The chains of each leaf type, in the order of search."""


def build(cluster: HivedCluster, chain_order: Iterable[str] | None = None) -> Forest:
    """Build the forests that `cluster` describes; chains are tried in `chain_order`, else in document order.

    Raises InvalidInput when `chain_order` does not name every chain exactly once.
    """
    names = dict.fromkeys(cell.cell_type for cell in cluster.physical_cluster.physical_cells)
    order = list(names) if chain_order is None else list(chain_order)
    if sorted(order) != sorted(names):
        raise InvalidInput("unknown-chain", f"The chains are {', '.join(names)}; the order names {', '.join(order)}.")
    forest = Forest({name: _chain(cluster, name) for name in order}, {}, {}, {}, {}, {})
    for index, cell in enumerate(cluster.physical_cluster.physical_cells):
        chain = forest.chains[cell.cell_type]
        _grow(forest, chain, chain.top, cell, "", "", index)
    for name in order:
        forest.chains_of.setdefault(forest.chains[name].leaf_type, []).append(name)
    for name, tenant in cluster.virtual_clusters.items():
        forest.tenants[name] = _tenant(forest, name, tenant)
    return forest


def _chain(cluster: HivedCluster, name: str) -> Chain:
    types = cluster.physical_cluster.cell_types
    levels: list[Level] = []
    leaves, above = 1, False
    for number, cell_type in enumerate(reversed(types_below(types, name)), LEAF):
        kind = types.get(cell_type)
        leaves *= kind.child_cell_number if kind else 1
        at_node = bool(kind and kind.is_node_level)
        levels.append(Level(name, number, cell_type, kind.child_cell_number if kind else 0, leaves, at_node, above))
        above = above or at_node
    return Chain(name, [levels[0], *levels], [[] for _ in range(len(levels) + 1)])


def _grow(
    forest: Forest, chain: Chain, number: int, spec: HivedPhysicalCell | None, prefix: str, node: str, default: int
) -> PhysicalCell:
    kind = chain.levels[number]
    own = (spec.cell_address if spec else "") or str(default)
    cell = PhysicalCell(kind, len(chain.cells[number]), prefix + own)
    chain.cells[number].append(cell)
    if kind.at_node:
        node, default = own, 0
    if spec is not None and spec.pinned_cell_id:
        forest.pins[spec.pinned_cell_id] = cell
    if number == LEAF:
        cell.nodes, cell.device = (node,), int(own)
        forest.devices[node, cell.device] = cell
        forest.on_node.setdefault(node, []).append(cell)
        return cell
    specs: list[HivedPhysicalCell] | list[None] = spec.cell_children if spec else []
    children = [
        _grow(forest, chain, number - 1, each, f"{cell.address}/", node, default * kind.arity + index)
        for index, each in enumerate(specs or [None] * kind.arity)
    ]
    for child in children:
        child.parent = cell
    cell.children = tuple(children)
    cell.nodes = tuple(name for child in children for name in child.nodes) if kind.above_node else (node,)
    return cell


def _tenant(forest: Forest, name: str, spec: HivedVirtualCluster) -> Tenant:
    tenant, count = Tenant(name), 0
    for owned in spec.virtual_cells:
        chain = forest.chains[owned.cell_type.split(".")[0]]
        number = chain.level_of(owned.cell_type.split(".")[-1])
        levels = tenant.owned.setdefault(chain.name, [[] for _ in chain.levels])
        for _ in range(owned.cell_number):
            root = _virtual(chain, number, f"{name}/{count}", name, "", len(levels[number]))
            levels[number].append(root)
            tenant.roots.setdefault(chain.name, []).append(root)
            count += 1
    for pin in spec.pinned_cells:
        cell = forest.pins[pin.pinned_cell_id]
        cell.pinned = True
        chain = forest.chains[cell.kind.chain]
        root = _virtual(chain, cell.level, f"{name}/{count}", name, pin.pinned_cell_id, 0)
        tenant.pinned[pin.pinned_cell_id] = root
        count += 1
    return tenant


def _virtual(chain: Chain, number: int, address: str, vc: str, pinned_id: str, ordinal: int) -> VirtualCell:
    root = VirtualCell(chain.levels[number], ordinal, address, vc, pinned_id)
    _fill(chain, root, root, 0)
    return root


def _fill(chain: Chain, root: VirtualCell, cell: VirtualCell, place: int) -> None:
    kind = cell.kind
    children = []
    for index in range(place * kind.arity, (place + 1) * kind.arity):
        below = chain.levels[kind.number - 1]
        child = VirtualCell(below, index, f"{cell.address}/{index}", root.vc, root.pinned_id)
        child.root, child.parent = root, cell
        _fill(chain, root, child, index)
        children.append(child)
    cell.children = tuple(children)
