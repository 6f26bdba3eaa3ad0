"""Resolve cell types, which refer to each other by name, into levels and counts of nodes and devices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from corral.spec.cell_types import CellType, NodeAmounts
from corral.spec.errors import Path, did_you_mean
from corral.spec.hostlists import MOST_DEVICES

_MOST_LEAVES: Final = 4_000_000
_OTHER: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Rule:
    """A resolved cell type: its level, and the number of nodes and devices in each of its cells."""

    name: str
    child: str
    count: int
    level: str
    is_node: bool
    above_node: bool
    leaf: str
    """The model of all its devices."""
    leaves: int
    nodes: int
    """Nodes inside; 1 for a node, 0 below one."""
    amounts: NodeAmounts

    @property
    def indexes(self) -> tuple[int, ...]:
        """The default device numbers of a node of this type."""
        return tuple(range(self.leaves))


def level_name(type_name: str) -> str:
    """The default level of a cell type: its name, converted to the form of level names."""
    return _OTHER.sub("-", type_name.lower()).strip("-")[:63].strip("-") or "cell"


def rules_of(
    types: Mapping[str, CellType], models: Iterable[str] = ()
) -> tuple[dict[str, Rule], list[tuple[Path, str]]]:
    """The rule of every valid type, and the errors of the others; paths begin with `cellTypes`.

    `models`, if not empty, are all device models; a child that is neither type nor model is then an error.
    """
    known = set(models)
    rules: dict[str, Rule] = {}
    findings: list[tuple[Path, str]] = []
    for name in types:
        chain, circle = _chain(types, name)
        if circle:
            findings.append((("cellTypes", name, "child"), f"goes round in a circle: {' → '.join(circle)}"))
            continue
        said = list(_wrong(types, name, chain, known))
        if said:
            findings += said
        else:
            rules[name] = _rule(types, chain)
    return rules, findings


def _chain(types: Mapping[str, CellType], name: str) -> tuple[list[str], list[str]]:
    """The types from `name` down to the last defined one, and the cycle that they form, if any."""
    chain = [name]
    while (child := types[chain[-1]].child) in types:
        if child in chain:
            return chain, [*chain[chain.index(child) :], child]
        chain.append(child)
    return chain, []


def _wrong(types: Mapping[str, CellType], name: str, chain: list[str], models: set[str]) -> Iterator[tuple[Path, str]]:
    own = types[name]
    inner = [each for each in chain[1:] if types[each].node is not None]
    if own.node is not None and inner:
        yield ("cellTypes", name, "node"), f'it has the node "{inner[0]}" inside it; a node has no nodes inside'
    if own.node is not None and own.level not in ("", "node"):
        yield ("cellTypes", name, "level"), "a node's level is node"
    if own.node is None and own.level in ("node", "device", "engine", "root"):
        yield ("cellTypes", name, "level"), f"{own.level} is a level of its own; name another, or write node: true"
    if own.child not in types and models and own.child not in models:
        near = did_you_mean(own.child, (*types, *models))
        yield ("cellTypes", name, "child"), f'no cell type or device model is called "{own.child}"{near}'
    size = 1
    for each in chain:
        size *= types[each].count
    if own.node is not None and size > MOST_DEVICES:
        yield ("cellTypes", name, "count"), f"a node of {size} devices; {MOST_DEVICES} are the most"
    elif size > _MOST_LEAVES:
        yield ("cellTypes", name, "count"), f"a cell of {size} devices; {_MOST_LEAVES} are the most"


def _rule(types: Mapping[str, CellType], chain: list[str]) -> Rule:
    own = types[chain[0]]
    node = next((at for at, each in enumerate(chain) if types[each].node is not None), None)
    leaves = nodes = 1
    for at, each in enumerate(chain):
        leaves *= types[each].count
        if node is not None and at < node:
            nodes *= types[each].count
    return Rule(
        name=chain[0],
        child=own.child,
        count=own.count,
        level="node" if own.node is not None else own.level or level_name(chain[0]),
        is_node=node == 0,
        above_node=node is not None and node > 0,
        leaf=types[chain[-1]].child,
        leaves=leaves,
        nodes=nodes if node is not None else 0,
        amounts=own.node or NodeAmounts(),
    )


def ordered_levels(chains: Iterable[tuple[str, ...]], usual: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Sort all levels, outermost first, by the order of every chain; also returns levels in conflict.

    Where chains leave it open, the order of `usual` holds, then that of first mention.
    """
    chains = list(chains)
    wanted = dict.fromkeys(level for chain in chains for level in chain)
    known = [level for level in usual if level in wanted]
    rank = {level: at for at, level in enumerate((*known, *(each for each in wanted if each not in known)))}
    above: dict[str, set[str]] = {level: set() for level in rank}
    for chain in chains:
        for outer, inner in pairwise(chain):
            above[inner].add(outer)
    order: list[str] = []
    waiting = sorted(rank, key=rank.__getitem__)
    while waiting:
        ready = next((level for level in waiting if above[level] <= set(order)), None)
        if ready is None:
            return order, waiting
        waiting.remove(ready)
        order.append(ready)
    return order, []
