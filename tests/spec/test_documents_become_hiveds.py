"""Documents written as cell types become HiveD's configuration, and convert back unchanged (H1, H2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corral.spec.cluster import ClusterDocument
from corral.spec.configuration_file import load_document
from corral.spec.errors import SpecError
from corral.spec.hived.configuration import HivedCluster, HivedPhysicalCell
from corral.spec.hived.exporter import hived_from
from corral.spec.hived.importer import cluster_of
from corral.spec.queue import QueueDocument
from tests.spec.test_hived_becomes_documents import PAI


def exported(text: str | dict[str, Any]) -> tuple[ClusterDocument, HivedCluster]:
    documents = load_document(text)
    cluster = documents[0]
    assert isinstance(cluster, ClusterDocument)
    return cluster, hived_from(cluster, [each for each in documents if isinstance(each, QueueDocument)])


def leaves(
    hived: HivedCluster, cell: HivedPhysicalCell, name: str, node: str, first: int
) -> list[tuple[str, str, int]]:
    """Node, type and number of every device, numbered as HiveD does where a number is missing."""
    known = hived.physical_cluster.cell_types.get(name)
    if known is None:
        return [(node, name, int(cell.cell_address or first))]
    node, first = (cell.cell_address, 0) if known.is_node_level else (node, first)
    children = cell.cell_children or [HivedPhysicalCell()] * known.child_cell_number
    out = []
    for at, child in enumerate(children):
        out += leaves(hived, child, known.child_cell_type, node, first * known.child_cell_number + at)
    return out


def all_leaves(hived: HivedCluster) -> list[tuple[str, str, int]]:
    cells = hived.physical_cluster.physical_cells
    return [leaf for cell in cells for leaf in leaves(hived, cell, cell.cell_type, "", 0)]


def devices(cluster: ClusterDocument) -> list[tuple[str, str, int]]:
    return sorted((node.name, device.model, device.index) for node in cluster.nodes for device in node.devices)


def test_every_recorded_configuration_comes_back_the_same(data_folder: Path) -> None:
    for scenario in json.loads((data_folder / "hived" / "cases.json").read_text())["scenarios"][:-1]:
        cluster, hived = exported(scenario["config"])
        assert sorted(all_leaves(hived)) == devices(cluster) == devices(cluster_of(hived))
        written = scenario["config"]["virtualClusters"]
        assert hived.virtual_clusters.keys() == written.keys()
        for name, tenant in hived.virtual_clusters.items():
            assert [cell.model_dump(by_alias=True) for cell in tenant.virtual_cells] == [
                cell for cell in written[name]["virtualCells"] if cell["cellNumber"]
            ]
            pins = [pin["pinnedCellId"] for pin in written[name].get("pinnedCells") or ()]
            assert [pin.pinned_cell_id for pin in tenant.pinned_cells] == pins
        assert cluster_of(hived).machines.pinned.keys() == cluster.machines.pinned.keys()
        assert [cell.cell_address for cell in hived.physical_cluster.physical_cells] == [
            cell["cellAddress"] for cell in scenario["config"]["physicalCluster"]["physicalCells"]
        ]


def test_openpais_short_cells_come_back_with_their_numbers() -> None:
    cluster, hived = exported(PAI)
    assert sorted(all_leaves(hived)) == devices(cluster)
    assert hived.virtual_clusters["default"].virtual_cells[0].cell_type == "K80-NODE"
    assert hived.virtual_clusters["default"].virtual_cells[1].cell_type == "K80-RACK.K80-NODE"


NATIVE = """
kind: Cluster
cellTypes:
  switch: {level: pcie-switch, child: V100, count: 2}
  box: {child: switch, count: 2, node: true}
  rack: {level: rack, child: box, count: 2}
cells:
- {type: rack, name: 'r[1-2]', nodes: 'n[1-4]'}
- {type: box, name: odd, devices: [4, 5, 8, 9]}
"""


def test_many_cells_at_once_are_written_out() -> None:
    queue = (
        "---\n{kind: Queue, name: a, cells: [{cellType: rack.switch, count: 3}, {level: rack}, {cellType: box.box}]}\n"
    )
    cluster, hived = exported(NATIVE + queue)
    assert sorted(all_leaves(hived)) == devices(cluster)
    assert [cell.cell_address for cell in hived.physical_cluster.physical_cells] == ["r1", "r2", "odd"]
    assert [(cell.cell_type, cell.cell_number) for cell in hived.virtual_clusters["a"].virtual_cells] == [
        ("rack.box.switch", 3),
        ("rack", 1),
        ("box", 1),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{kind: Cluster, racks: {r: {nodes: [a]}}}", "cells: HiveD knows cells of types only"),
        (
            NATIVE + "---\n{kind: Queue, name: a, cells: [{level: node}]}",
            "queues.a.cells[0]: node is cells of several chains (rack, box); HiveD wants one: write cellType: CHAIN.TYPE",
        ),
        (NATIVE + "---\n{kind: Queue, name: a, cells: [{level: block}]}", "queues.a.cells[0]: block is no cell"),
        (
            NATIVE + "---\n{kind: Queue, name: a, cells: [{level: rack, count: 3}]}",
            "virtualClusters: the virtual clusters own 3 cells of type rack",
        ),
    ],
)
def test_what_hived_has_no_words_for_is_refused(text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        exported(text)
    assert said in str(caught.value)
