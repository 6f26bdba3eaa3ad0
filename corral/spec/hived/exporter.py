"""Convert our cluster and queue documents to HiveD's configuration, for the scheduler's HiveD algorithm.

This is the reverse of `hived_bridge`. Every cell is written out, because HiveD has no notation for several at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from corral.spec import hostlists
from corral.spec.cell_type_resolution import Rule, rules_of
from corral.spec.cell_types import Cell
from corral.spec.cluster import ClusterDocument
from corral.spec.errors import Path, Problem, SpecError
from corral.spec.hived.configuration import HivedCluster, load_hived
from corral.spec.queue import QueueCells, QueueDocument
from corral.spec.quota_check import chain_and_type


def hived_from(cluster: ClusterDocument, queues: Iterable[QueueDocument]) -> HivedCluster:
    """HiveD's configuration of a cluster written as cell types, with each queue as a virtual cluster.

    A queue that owns no cells becomes a virtual cluster without quota. Raises SpecError for racks without types and for
    an owned type of several chains. The result must also keep HiveD's own rules, such as owning no more than there is.
    """
    if not cluster.cells or cluster.blocks or cluster.racks or cluster.free_nodes:
        raise _refused(("cells",), "HiveD knows cells of types only; write the machines as cellTypes and cells")
    rules, _ = rules_of(cluster.cell_types, cluster.models)
    types = {
        name: {
            "childCellType": each.child,
            "childCellNumber": each.count,
            **({"isNodeLevel": True} if each.node is not None else {}),
        }
        for name, each in cluster.cell_types.items()
    }
    written = _Written(rules)
    cells = [made for cell in cluster.cells for made in written.top(cell)]
    tenants = {
        queue.name: {
            "virtualCells": [_owned(cluster, rules, queue, at, cells) for at, cells in enumerate(queue.cells)],
            "pinnedCells": [{"pinnedCellId": name} for name in queue.pinned_cells],
        }
        for queue in queues
    }
    document = {"physicalCluster": {"cellTypes": types, "physicalCells": cells}, "virtualClusters": tenants}
    return load_hived(document, filename="the cluster and its queues")


def _refused(path: Path, message: str) -> SpecError:
    return SpecError([Problem(message, path)])


class _Written:
    """Writes cells in HiveD's form: each with its address, down to the level where only defaults follow."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules

    def top(self, cell: Cell) -> Iterator[dict[str, Any]]:
        """The cells of one entry."""
        rule = self._rules[cell.type]
        names = hostlists.expand(cell.name) if cell.name else [""]
        nodes = hostlists.expand_all(cell.nodes)
        for at, name in enumerate(names):
            inside = nodes[at * rule.nodes : (at + 1) * rule.nodes]
            yield {"cellType": rule.name, **self._cell(cell, rule, name, "", inside)}

    def _cell(self, cell: Cell | None, rule: Rule, name: str, above: str, nodes: Sequence[str]) -> dict[str, Any]:
        made: dict[str, Any] = {"pinnedCellId": cell.pinned} if cell is not None and cell.pinned else {}
        if rule.is_node:
            made["cellAddress"] = name or nodes[0]
            if cell is not None and (cell.devices or cell.children):
                made["cellChildren"] = self._numbered(cell, rule, cell.devices or list(range(rule.leaves)))
            return made
        if name:
            made["cellAddress"] = name.removeprefix(f"{above}/").replace("/", "-")
        child = self._rules[rule.child]
        made["cellChildren"] = []
        for at, inner in enumerate(cell.children if cell is not None and cell.children else [None] * rule.count):
            own = hostlists.expand_all(inner.nodes) if inner is not None and inner.nodes else ()
            inside = own or nodes[at * child.nodes : (at + 1) * child.nodes]
            inner_name = inner.name if inner is not None else ""
            made["cellChildren"].append(self._cell(inner, child, inner_name, name, inside))
        return made

    def _numbered(self, cell: Cell | None, rule: Rule, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """The children of a node or of a cell inside it, with the numbers of all devices."""
        per = len(numbers) // rule.count
        out = []
        for at, inner in enumerate(cell.children if cell is not None and cell.children else [None] * rule.count):
            share = numbers[at * per : (at + 1) * per]
            made: dict[str, Any] = {"pinnedCellId": inner.pinned} if inner is not None and inner.pinned else {}
            below = self._rules.get(rule.child)
            if inner is not None and inner.devices:
                share = inner.devices
            if below is None:
                number = inner.name if inner is not None and not inner.devices and inner.name.isdigit() else share[0]
                made["cellAddress"] = str(number)
            else:
                made["cellChildren"] = self._numbered(inner, below, share)
            out.append(made)
        return out


def _owned(
    cluster: ClusterDocument, rules: Mapping[str, Rule], queue: QueueDocument, at: int, cells: QueueCells
) -> dict[str, Any]:
    """One entry of a queue's cells, as HiveD's dotted path from a chain to a type."""
    chain, name = chain_and_type(cells.what)
    tops = list(dict.fromkeys(cell.type for cell in cluster.cells))
    paths = [path for top in ([chain] if chain else tops) if (path := _path(rules, top, cells, name))]
    if len(paths) != 1:
        found = f"cells of several chains ({', '.join(path[0] for path in paths)})" if paths else "no cell"
        said = f"{cells.what} is {found}; HiveD wants one: write cellType: CHAIN.TYPE"
        raise _refused(("queues", queue.name, "cells", at), said)
    return {"cellType": ".".join(paths[0]), "cellNumber": cells.count}


def _path(rules: Mapping[str, Rule], top: str, cells: QueueCells, name: str) -> list[str]:
    """The types from a chain's top down to the type or level `name`; [] when the chain has none."""
    path, here = [], top
    while here in rules:
        rule = rules[here]
        path.append(here)
        meant = here == name if cells.cell_type else rule.level == name
        if meant and (not cells.model or rule.leaf == cells.model):
            return path
        here = rule.child
    meant = here == name if cells.cell_type else name == "device"
    return [*path, here] if meant and path and (not cells.model or here == cells.model) else []
