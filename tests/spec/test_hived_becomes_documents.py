"""OpenPAI's and HiveD's own configuration loads unchanged: machines, virtual clusters and preset (H1, H2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corral.devices.described import described_inventory
from corral.model.queue_specs import queue_spec
from corral.model.queues import CellQuota
from corral.scheduler.cluster.topology_tree import Tree
from corral.spec.cluster import ClusterDocument, load_cluster
from corral.spec.configuration_file import load_document
from corral.spec.errors import SpecError
from corral.spec.policy import PolicyDocument
from corral.spec.queue import QueueDocument
from corral.spec.quota_check import quota_findings

PAI = """
physicalCluster:
  skuTypes: {K80: {gpu: 1, cpu: 5, memory: 56334Mi}}
  cellTypes:
    K80-SWITCH: {childCellType: K80, childCellNumber: 2}
    K80-NODE: {childCellType: K80-SWITCH, childCellNumber: 2, isNodeLevel: true}
    K80-RACK: {childCellType: K80-NODE, childCellNumber: 2}
    CT: {childCellType: T4, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
  - cellType: K80-RACK
    cellAddress: 3
    cellChildren: [{cellAddress: worker1, pinnedCellId: VC-PIN}, {cellAddress: worker2}]
  - {cellType: K80-NODE, cellAddress: worker3}
  - {cellType: CT, cellAddress: worker2, cellChildren: [{cellAddress: 8}, {cellAddress: 9}]}
virtualClusters:
  default: {virtualCells: [{cellType: K80-NODE, cellNumber: 1}, {cellType: K80-RACK.K80-NODE, cellNumber: 1}]}
  pinned: {pinnedCells: [{pinnedCellId: VC-PIN}]}
"""


@pytest.fixture
def design(data_folder: Path) -> dict[str, Any]:
    """HiveD's design configuration, from the recorded cases."""
    config: dict[str, Any] = json.loads((data_folder / "hived" / "cases.json").read_text())["scenarios"][0]["config"]
    return config


def leaves(cell: dict[str, Any], node: str, types: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Node, type and index of every device of a physical cell with explicit children, by HiveD's own rules."""
    if cell["cellType"] not in types:
        return [(node, cell["cellType"], int(cell["cellAddress"]))]
    node = cell["cellAddress"] if types[cell["cellType"]]["isNodeLevel"] else node
    return [leaf for child in cell["cellChildren"] for leaf in leaves(child, node, types)]


def test_the_design_configuration_has_every_leaf(design: dict[str, Any]) -> None:
    """H1: 21 cell types, 10 top cells, mixed models on one node, explicit indices."""
    physical = design["physicalCluster"]
    assert (len(physical["cellTypes"]), len(physical["physicalCells"])) == (21, 10)
    documents = load_document(design)
    cluster = documents[0]
    assert isinstance(cluster, ClusterDocument)
    inventory = described_inventory(cluster, "local")
    wanted = [leaf for cell in physical["physicalCells"] for leaf in leaves(cell, "", physical["cellTypes"])]
    found = [
        (node.name.removeprefix("local/"), device.model, device.index)
        for node in inventory.nodes
        for device in node.devices
    ]
    assert sorted(found) == sorted(wanted)
    chains = {cell["cellType"] for cell in physical["physicalCells"]}
    assert {device.chain for node in inventory.nodes for device in node.devices} == chains
    assert {pin.name for pin in inventory.pinned} == {"VC1-YQW-CT1", "VC1-YQW-DGX2", "VC1-YQW-IB-DGX2"}
    tree = Tree(inventory)
    assert sum(layout.all.bit_count() for layout in tree.layouts) == len(wanted)


def test_switches_of_the_design_configuration_hold_the_devices_that_it_says(design: dict[str, Any]) -> None:
    """H1: node 1.0.0.0 numbers its devices across sockets, and both sockets have a switch called 1."""
    cluster = load_cluster(design)
    node = next(node for node in cluster.nodes if node.name == "1.0.0.0")
    switches: dict[str, set[int]] = {}
    for device in node.devices:
        switches.setdefault(dict(device.cells)["dgx1-p100-pci-switch"], set()).add(device.index)
    assert sorted(map(sorted, switches.values())) == [[0, 2], [1, 3], [4, 7], [5, 6]]


def test_virtual_clusters_become_queues_that_own_their_cells() -> None:
    documents = load_document(PAI)
    cluster, default, pinned, policy = documents
    assert isinstance(cluster, ClusterDocument) and isinstance(policy, PolicyDocument)
    assert isinstance(default, QueueDocument) and isinstance(pinned, QueueDocument)
    assert policy.preset == "hived"
    assert queue_spec(default, cluster.machines.types).cells == (
        CellQuota("k80-node", 1, "K80", "K80-NODE"),
        CellQuota("k80-node", 1, "K80", "K80-RACK"),
    )
    assert queue_spec(pinned).pinned_cells == ("VC-PIN",)
    assert quota_findings(cluster, [default, pinned]) == []


def test_a_node_has_what_its_devices_come_with() -> None:
    cluster = load_document(PAI)[0]
    assert isinstance(cluster, ClusterDocument)
    nodes = {node.name: node for node in cluster.nodes}
    assert list(nodes) == ["worker1", "worker2", "worker3"]
    assert (nodes["worker1"].cpu_millis, nodes["worker1"].memory_bytes) == (20_000, 4 * 56_334 * 2**20)
    assert [(device.index, device.model) for device in nodes["worker2"].devices] == [
        (0, "K80"), (1, "K80"), (2, "K80"), (3, "K80"), (8, "T4"), (9, "T4"),
    ]  # fmt: skip
    assert nodes["worker1"].cells == nodes["worker2"].cells == (("k80-rack", "3"),)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_cluster_file_may_be_hiveds_or_openpais(wrapped: bool) -> None:
    text = PAI
    if wrapped:
        text = "hivedscheduler:\n  config: |\n" + "".join(f"    {line}\n" for line in PAI.splitlines())
    cluster = load_cluster(text, filename="services-configuration.yaml")
    assert len(cluster.nodes) == 3
    assert [queue.name for queue in cluster.queues if queue.is_virtual_cluster] == ["default", "pinned"]


def test_what_cannot_be_is_refused_where_it_stands() -> None:
    """H2: more cells owned than exist."""
    with pytest.raises(SpecError, match=r"virtualClusters: the virtual clusters own 2 cells of type K80-NODE"):
        load_document(PAI.replace("{cellType: K80-NODE, cellNumber: 1}", "{cellType: K80-NODE, cellNumber: 2}"))
    with pytest.raises(SpecError, match="name: expected letters"):
        load_document(PAI.replace("  pinned:", "  'a b':"))


def test_the_documents_read_back_as_they_were_stored() -> None:
    for document in load_document(PAI):
        stored = document.model_dump(mode="json", by_alias=True)
        assert load_document(stored) == [document]
