"""A label or a bound that is not an integer never compares, and causes no error."""

from __future__ import annotations

import pytest

from corral.model.inventory import Inventory, Node
from corral.model.requests import Expression, NodeRules, RoleRequest
from corral.scheduler.cluster.topology_tree import Tree
from corral.scheduler.placement.node_fit import fitting_devices
from corral.scheduler.placement.shape import task_shape

ODD = ["--5", "5-", "-", "", "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT FIVE}", "5.0", "five"]


def fits(value: str, operator: str, bound: str) -> bool:
    tree = Tree(Inventory("local", (Node("local/a", labels={"size": value}),), ("node",)))
    rules = NodeRules(expressions=(Expression("size", operator, (bound,)),))
    return bool(fitting_devices(tree, task_shape(RoleRequest("w", (0,), 1, nodes=rules)))[0])


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_whole_number_compares_with_nothing(operator: str, odd: str) -> None:
    assert not fits(odd, operator, "3")
    assert not fits("3", operator, odd)


@pytest.mark.parametrize(
    ("value", "operator", "bound", "expected"),
    [("4", "Gt", "3", True), ("3", "Gt", "3", False), ("-4", "Lt", "-3", True), ("9" * 40, "Gt", "8" * 40, True)],
)
def test_whole_numbers_compare(value: str, operator: str, bound: str, expected: bool) -> None:
    assert fits(value, operator, bound) is expected
