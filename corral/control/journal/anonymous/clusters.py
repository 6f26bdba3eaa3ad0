"""The cells of a Cluster document without names, for schedulers that read which cells queues own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from corral.control.journal.anonymous.names import Names
from corral.spec import hostlists
from corral.spec.cell_type_resolution import Rule, rules_of
from corral.spec.cell_types import Cell
from corral.spec.cluster import ClusterDocument


def anonymous_cluster(names: Names, cluster: ClusterDocument) -> ClusterDocument:
    """A Cluster document of the same cells under new names, each named where it is; racks without types are left out."""
    rules, _ = rules_of(cluster.cell_types, cluster.models)
    names.has_types(rules)
    for name, rule in rules.items():
        if rule.is_node and cluster.machines.types[name].level != rule.level:
            names.has_type_level(name)
    made: dict[str, Any] = {
        "engine": names.engine(cluster.engine),
        "levels": [names.level(level) for level in cluster.levels],
        "cellTypes": {names.cell_type(name): _type(names, rule) for name, rule in rules.items()},
        "models": {
            names.model(model): {"kind": names.kind(each.kind), "memory": each.memory}
            for model, each in cluster.models.items()
        },
        "cells": _Written(names, rules).cells(cluster.cells),
    }
    return ClusterDocument.model_validate(made)


def _type(names: Names, rule: Rule) -> dict[str, Any]:
    made: dict[str, Any] = {"child": names.cell_type(rule.child), "count": rule.count}
    return made | ({"node": True} if rule.is_node else {"level": names.level(rule.level)})


class _Written:
    """Writes cells with their names, as `corral.spec.cell_expansion` finds or makes them."""

    def __init__(self, names: Names, rules: Mapping[str, Rule]) -> None:
        self._names = names
        self._rules = rules
        self._numbers: Counter[str] = Counter()

    def cells(self, cells: Sequence[Cell]) -> list[dict[str, Any]]:
        """The cells at the top, one by one."""
        made = []
        for cell in cells:
            rule = self._rules[cell.type]
            nodes = hostlists.expand_all(cell.nodes)
            for at, name in enumerate(hostlists.expand(cell.name) if hostlists.is_range(cell.name) else [cell.name]):
                inside = nodes[at * rule.nodes : (at + 1) * rule.nodes]
                named = name or self._numbered(rule)
                made.append({"type": self._names.cell_type(rule.name), **self._cell(cell, rule, named, inside)})
        return made

    def _numbered(self, rule: Rule) -> str:
        if not rule.above_node:
            return ""
        self._numbers[rule.name] += 1
        return f"{rule.level}-{self._numbers[rule.name]}"

    def _cell(self, cell: Cell | None, rule: Rule, name: str, nodes: Sequence[str]) -> dict[str, Any]:
        """A cell at or above a node."""
        if rule.is_node:
            below = {} if cell is None else self._below(cell, rule.name)
            return {**below, "name": self._names.node(name or nodes[0])}
        child = self._rules[rule.child]
        made: dict[str, Any] = {"name": self._names.cell(rule.level, name), "children": []}
        if cell is not None and cell.pinned:
            made["pinned"] = self._names.pinned_cell(cell.pinned)
        for at, inner in enumerate(cell.children if cell is not None and cell.children else [None] * rule.count):
            own = hostlists.expand_all(inner.nodes) if inner is not None and inner.nodes else ()
            inside = own or nodes[at * child.nodes : (at + 1) * child.nodes]
            said = "" if inner is None else inner.name
            label = said or ("" if child.is_node else f"{name}/{at}")
            made["children"].append(self._cell(inner, child, label, inside))
        return made

    def _below(self, cell: Cell, type_name: str) -> dict[str, Any]:
        """What a cell at or below a node says besides its name: its devices, what is inside it, and its pin."""
        made: dict[str, Any] = {}
        rule = self._rules.get(type_name)
        if cell.devices:
            made["devices"] = cell.devices
        elif rule is None and cell.name.isdigit():
            made["devices"] = [int(cell.name)]
        if cell.children and rule is not None:
            made["children"] = [self._below(each, rule.child) for each in cell.children]
        if cell.pinned:
            made["pinned"] = self._names.pinned_cell(cell.pinned)
        return made
