"""Owned and pinned cells in documents reach the scheduler's cell ownership (H2, H9)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.devices.described import described_inventory
from corral.model.configuration import configuration_of
from corral.scheduler import Cluster, NodesSeen, QueuesConfigured
from corral.scheduler.cells.cell_type import Structure
from corral.scheduler.cluster.topology_tree import Tree
from corral.spec.cluster import ClusterDocument
from corral.spec.configuration_file import load_document

SITE = """
kind: Cluster
cellTypes:
  switch: {level: pcie-switch, child: V100, count: 2}
  box: {child: switch, count: 2, node: true}
  rack: {level: rack, child: box, count: 2}
  t4: {child: T4, count: 2, node: true}
cells:
- {type: rack, name: r1, nodes: 'n[1-2]', pinned: whole-rack}
- {type: rack, name: r2, children: [{name: n3, pinned: one-node}, {name: n4, children: [{}, {pinned: one-switch}]}]}
- {type: box, name: m, pinned: part-of-m}
- {type: t4, name: m, devices: 8-9, pinned: other-part-of-m}
---
{kind: Queue, name: a, pinnedCells: [whole-rack, one-node, one-switch, part-of-m, other-part-of-m]}
---
{kind: Queue, name: b, cells: [{cellType: rack.box, count: 1}]}
"""


@pytest.mark.parametrize(
    ("number", "node", "mask"),
    [
        (0, "n1 n2", 0b1111),
        (1, "n3", 0b1111),
        (2, "n4", 0b1100),
        (3, "m", 0b1111),
        (4, "m", 0b11_0000_0000),
    ],
)  # fmt: skip
def test_a_pinned_name_is_found_in_the_tree(number: int, node: str, mask: int) -> None:
    """H9: every pinned cell, whether above a node, a node, a part of one, or below it."""
    documents = load_document(SITE)
    cluster = documents[0]
    assert isinstance(cluster, ClusterDocument)
    specs = {spec.name: spec for spec in configuration_of(documents).queue_specs()}
    structure = Structure(Tree(described_inventory(cluster, "local")))
    engine, _, name = specs["a"].pinned_cells[number].partition("|")
    assert engine == "local"
    found = structure.named(name)
    assert found is not None, name
    masks = [(structure.tree.nodes[at].name.removeprefix("local/"), held) for at, held in structure.masks(*found)]
    assert masks == [(each, mask) for each in node.split()]


def test_an_owned_type_is_a_level_and_a_model() -> None:
    (quota,) = next(spec for spec in configuration_of(load_document(SITE)).queue_specs() if spec.name == "b").cells
    assert (quota.level, quota.model, quota.chain, quota.count) == ("box", "V100", "rack", 1)


def test_the_cells_of_hiveds_virtual_clusters_are_all_there(data_folder: Path) -> None:
    """H2: for each recorded configuration, enough is left for all owners, and every pinned cell is found."""
    scenarios = json.loads((data_folder / "hived" / "cases.json").read_text())["scenarios"]
    for scenario in scenarios[:-1]:
        documents = load_document(scenario["config"])
        assert isinstance(documents[0], ClusterDocument)
        cluster = Cluster()
        cluster.apply(NodesSeen(described_inventory(documents[0], "local")))
        cluster.apply(QueuesConfigured(configuration_of(documents).queue_specs()))
        cells = cluster.ownership.cells["local"]
        assert cluster.ownership.shortfalls() == []
        owned = scenario["config"]["virtualClusters"]
        wanted = sum(
            sum(cell["cellNumber"] for cell in each.get("virtualCells") or ()) + len(each.get("pinnedCells") or ())
            for each in owned.values()
        )
        assert sum(sum(quota.values()) for quota in cells.quotas.values()) == wanted, scenario["name"]
