"""Devices of one node are chosen by their measured links, whatever the words of the matrix (Y3).

The cases are those where YARN-8821 fails (scheduling.md, section 5.2): it ranks PIX below SYS, and does not know NV12.
"""

from __future__ import annotations

import pytest

from corral.devices.described import described_inventory
from corral.model.inventory import Inventory
from corral.model.placement import Placement
from corral.model.requests import TopologyRequest
from corral.scheduler import Cluster, NodesSeen
from corral.spec.cluster import load_cluster
from tests.devices.test_topology_tables import DGX1, switched
from tests.scheduler.machines import gang, occupy, place, role

PCIE = """
        GPU0    GPU1    GPU2    GPU3
GPU0     X      SYS     PIX     SYS
GPU1    SYS      X      SYS     PIX
GPU2    PIX     SYS      X      SYS
GPU3    SYS     PIX     SYS      X
"""
BRIDGED = """
        GPU0    GPU1    GPU2    GPU3
GPU0     X      PIX     SYS     NV12
GPU1    PIX      X      NV12    SYS
GPU2    SYS     NV12     X      PIX
GPU3    NV12    SYS     PIX      X
"""


def machine(table: str) -> Cluster:
    """One node `n` wired as a matrix in a cluster document."""
    matrix = "".join(f"    {line}\n" for line in table.strip("\n").splitlines())
    document = load_cluster(f"node:\n  devices:\n   model: X\n   matrix: |1\n{matrix}nodes: [n]\n")
    found = Cluster()
    found.apply(NodesSeen(described_inventory(document, "local")))
    return found


def chosen(found: Placement | None) -> list[tuple[int, ...]]:
    assert found is not None
    return [task.devices for task in found.tasks]


def test_one_pcie_switch_is_nearer_than_another_socket() -> None:
    assert chosen(place(machine(PCIE), gang("a", role(1, 2)))) == [(0, 2)]
    taken = machine(PCIE)
    occupy(taken, "n", 0)
    assert chosen(place(taken, gang("a", role(1, 2)))) == [(1, 3)]


def test_a_bridge_is_nearer_than_a_pcie_switch() -> None:
    assert chosen(place(machine(BRIDGED), gang("a", role(2, 2)))) == [(0, 3), (1, 2)]


@pytest.mark.parametrize("word", ["NV4", "NV12", "NV18"])
def test_between_switched_gpus_one_pcie_switch_and_one_socket_decide(word: str) -> None:
    taken = machine(switched(word))
    occupy(taken, "n", 0, 5)
    assert chosen(place(taken, gang("a", role(1, 2)))) == [(2, 3)]
    assert chosen(place(taken, gang("a", role(1, 4)))) is not None


def test_a_required_island_is_all_of_a_switched_machine() -> None:
    whole = gang("a", role(2, 4, topology=TopologyRequest(required="nvlink")))
    assert chosen(place(machine(switched("NV18")), whole)) == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_a_required_island_is_half_of_a_mesh() -> None:
    taken = machine(DGX1)
    four = gang("a", role(1, 4, topology=TopologyRequest(required="nvlink")))
    assert chosen(place(taken, four)) == [(0, 1, 2, 3)]
    assert place(taken, gang("b", role(1, 5, topology=TopologyRequest(required="nvlink")))) is None
    occupy(taken, "n", 2)
    assert chosen(place(taken, four)) == [(4, 5, 6, 7)]


def test_the_best_connected_of_an_island_are_taken() -> None:
    """GPU0 has two links to GPU3 and one to each of the others of its island."""
    taken = machine(DGX1)
    occupy(taken, "n", 1, 4, 5, 6, 7)
    assert chosen(place(taken, gang("a", role(1, 2)))) in ([(0, 3)], [(2, 3)])


def test_a_matrix_of_a_document_reaches_the_node() -> None:
    document = load_cluster('nodes: {n: {devices: {matrix: "GPU0 GPU1\\nGPU0 X NV12\\nGPU1 NV12 X"}}}')
    inventory: Inventory = described_inventory(document, "local")
    (node,) = inventory.nodes
    assert node.links == ((0, 112), (112, 0))
    assert [device.cells for device in node.devices] == [(("nvlink", "0"),)] * 2
