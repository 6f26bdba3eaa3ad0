"""Slurm's topology.conf gives the levels above the nodes."""

from __future__ import annotations

import pytest

from corral.spec.cluster import ClusterDocument, load_cluster
from corral.spec.errors import SpecError
from corral.spec.slurm_topology import is_switches, read_switches

TREE = """
# a fat tree
SwitchName=s0 Nodes=tux[0-5] LinkSpeed=100
SwitchName=s1 Nodes=tux[6-11],cpu1
SwitchName=s2 Nodes=tux[12-17]   # the old ones
SwitchName=top Switches=s[0-1]
SwitchName=other Switches=s2
"""


def cells(document: ClusterDocument) -> dict[str, tuple[tuple[str, str], ...]]:
    return {node.name: node.cells for node in document.nodes}


def test_switches_are_racks_and_the_switches_around_them_blocks() -> None:
    found = read_switches(TREE)
    assert found.levels == ("block", "rack")
    assert found.nodes["tux[6-11],cpu1"] == (("block", "top"), ("rack", "s1"))
    placed = cells(load_cluster(found.to_document()))
    assert len(placed) == 19
    assert placed["cpu1"] == placed["tux11"] == (("block", "top"), ("rack", "s1"))
    assert placed["tux17"] == (("block", "other"), ("rack", "s2"))


def test_higher_switches_are_tiers() -> None:
    text = "SwitchName=a Nodes=n1\nSwitchName=b Switches=a\nSwitchName=c Switches=b\nSwitchName=d Nodes=n2\n"
    found = read_switches(text)
    assert found.levels == ("tier-3", "block", "rack")
    document = load_cluster(found.to_document())
    assert cells(document) == {"n1": (("tier-3", "c"), ("block", "b"), ("rack", "a")), "n2": (("rack", "d"),)}
    assert document.machines.levels.index("tier-3") == 0


def test_blocks_of_slurms_other_kind_are_blocks() -> None:
    found = read_switches("BlockName=b1 Nodes=node[01-18]\nBlockName=b2 Nodes=node[19-36]\nBlockSizes=18\n")
    placed = cells(load_cluster(found.to_document()))
    assert placed["node18"] == (("block", "b1"),) and placed["node19"] == (("block", "b2"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t: no line says SwitchName= or BlockName="),
        ("SwitchName=a\n", 't:1:1: "a" has either Nodes or Switches below it'),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", 't:2:1: "a" is already there'),
        ("SwitchName=a Switches=rac\nSwitchName=rack Nodes=n1\n", 't:1:1: no switch is called "rac"; did you mean "rack"?'),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", 't:1:1: "a" goes round in a circle'),
        ("SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[4-6]\n", 't:2:1: the node "n4" is below "a" already'),
        ("SwitchName=a Nodes=n[4-1]\n", 't:1:1: "n[4-1]": 4-1 counts backwards'),
        (
            "SwitchName=a Nodes=n1\nSwitchName=b Switches=a\nSwitchName=c Switches=a\n",
            't:3:1: "a" is below "b" already',
        ),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_switches(text, "t")
    assert said in str(caught.value)


def test_a_file_of_switches_is_known_by_its_lines() -> None:
    assert is_switches(TREE) and is_switches("switchname=a nodes=b")
    assert not is_switches("GPU0 GPU1\nGPU0 X NV1\n")
