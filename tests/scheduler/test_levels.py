"""A level that an engine lacks becomes the next lower one, never a wider one, and the placement notes it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from corral.model.inventory import Device, Inventory, Node
from corral.scheduler import Cluster, NodesSeen, could_ever_fit
from corral.scheduler.cluster.topology_level import complete, resolve
from tests.scheduler.machines import cluster, gang, node, occupy, place, role


@dataclass(frozen=True)
class Case:
    sentence: str
    wanted: str
    levels: tuple[str, ...]
    means: str | None


CASES = (
    Case("a level that is there is itself", "rack", ("rack", "node", "device"), "rack"),
    Case("no rack means the node", "rack", ("node", "device"), "node"),
    Case("no NUMA node means the PCIe switch", "numa", ("node", "pcie-switch", "device"), "pcie-switch"),
    Case("nothing inside the node means the device", "numa", ("node", "device"), "device"),
    Case("a block may become a rack", "block", ("rack", "node", "device"), "rack"),
    Case("a name that nobody knows means nothing", "galaxy", ("node", "device"), None),
    Case("the root is as wide as an engine", "root", ("node", "device"), "engine"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence)
def test_what_a_level_means_on_an_engine(case: Case) -> None:
    levels = complete(case.levels)
    depth = resolve(case.wanted, levels)
    assert (None if depth is None else levels[depth]) == case.means


def test_a_level_of_another_engine_stands_where_that_one_has_it() -> None:
    levels = complete(("node", "device"))
    depth = resolve("pod", levels, [complete(("pod", "rack", "node", "device"))])
    assert depth is not None and levels[depth] == "node"


def two_flat_nodes() -> Cluster:
    """An engine without racks, each of its nodes with 2 devices directly below it."""
    nodes = tuple(
        Node(f"local/n{at}", (), (Device(0, f"{at}:0"), Device(1, f"{at}:1")), cpu_millis=1000) for at in range(2)
    )
    target = Cluster()
    target.apply(NodesSeen(Inventory("local", nodes, ("node", "device"))))
    return target


def test_a_required_rack_without_racks_is_one_node_with_a_note() -> None:
    target = two_flat_nodes()
    placement = place(target, gang("job", role(2), required="rack"))
    assert placement is not None
    assert len({task.node for task in placement.tasks}) == 1
    assert placement.notes == ("there is no level rack here: node was required instead",)
    assert place(target, gang("job", role(3), required="rack")) is None


def test_a_preferred_level_that_is_not_there_is_only_a_note() -> None:
    placement = place(two_flat_nodes(), gang("job", role(3), preferred="rack"))
    assert placement is not None
    assert "preferred level rack does not exist" in placement.notes[0]


def test_a_preferred_level_that_is_full_is_only_a_note() -> None:
    target = cluster(node("n1", rack="r1"), node("n2", rack="r2"))
    occupy(target, "n1", 0, 1, 2)
    occupy(target, "n2", 0, 1, 2)
    placement = place(target, gang("job", role(2), preferred="rack"))
    assert placement is not None
    assert placement.notes == ("the job preferred one rack; it shares one block",)


def test_a_preferred_level_wins_over_the_tightest_node() -> None:
    target = cluster(node("n1"), node("n2"))
    occupy(target, "n1", 0, 2)
    placement = place(target, gang("job", role(2), preferred="pcie-switch"))
    assert placement is not None
    assert {task.node for task in placement.tasks} == {"local/n2"}


def test_an_unknown_level_is_never_possible() -> None:
    reasons = could_ever_fit(cluster(node("n1")), gang("job", role(), required="galaxy"))
    assert reasons is not None
    assert reasons.binding.code == "unknown-level"
    assert reasons.binding.message.startswith('There is no topology level "galaxy"; levels here are ')


def test_a_misspelt_level_is_answered_with_the_nearest_one_and_those_there_are() -> None:
    reasons = could_ever_fit(cluster(node("n1")), gang("job", role(), required="nodde"))
    assert reasons is not None
    said = reasons.binding.message
    assert said.startswith('There is no topology level "nodde"; did you mean "node"? Levels here are '), said
    assert "node" in said.partition("Levels here are ")[2]
