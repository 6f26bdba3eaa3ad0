"""The exits in the docstrings of group and cell states are exactly those that random events reach (score row H7)."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

from corral.scheduler.planners.hived.algorithm import GroupState, HivedAlgorithm, Order, cells, groups
from corral.scheduler.planners.hived.algorithm.cells import CellState
from tests.scheduler.hived_life import Life

EVENTS = ("schedule", "add_allocated", "delete_allocated", "delete_unallocated", "set_node_health", "set_device_health")


def documented(module: ModuleType, kind: type[StrEnum]) -> dict[str, set[str]]:
    """The exits that each member's docstring names."""
    tree = ast.parse(inspect.getsource(module))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__)
    found = {}
    for line, after in pairwise(body):
        if isinstance(line, ast.Assign) and isinstance(after, ast.Expr):
            name, text = line.targets[0], ast.literal_eval(after.value)
            assert isinstance(name, ast.Name)
            arrows = re.search(r"^\s*-> (.+)$", text, re.MULTILINE)
            assert arrows, text
            found[name.id] = set(arrows[1].split(" | "))
    return found


class Watch:
    """Calls events of an algorithm and records the state changes of each."""

    def __init__(self) -> None:
        self.groups: dict[str, set[str]] = defaultdict(set)
        self.cells: dict[str, set[str]] = defaultdict(set)

    def over(self, algorithm: HivedAlgorithm, event: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            known = {name: (group, group.state) for name, group in algorithm.groups.items()}
            states = {cell: cell.state for cell in algorithm.state.forest.devices.values()}
            try:
                return event(*args, **named)
            finally:
                for name, (group, before) in known.items():
                    after = algorithm.groups.get(name)
                    to = after.state.name if after is group else "gone"
                    if to != before.name:
                        self.groups[before.name].add(to)
                for cell, state in states.items():
                    if cell.state is not state:
                        self.cells[state.name].add(cell.state.name)

        return call


@pytest.fixture(scope="module")
def seen() -> Watch:
    watch = Watch()
    for seed in range(25):
        life = Life(("states", seed), Order.CONFIGURATION)
        for event in EVENTS:
            setattr(life.algorithm, event, watch.over(life.algorithm, getattr(life.algorithm, event)))
        for _ in range(150):
            life.live()
    return watch


def test_the_exits_of_group_states_are_those_that_happen(seen: Watch) -> None:
    assert documented(groups, GroupState) == seen.groups


def test_the_exits_of_cell_states_are_those_that_happen(seen: Watch) -> None:
    assert documented(cells, CellState) == seen.cells
