"""A cluster document adds to nodes that an engine finds itself what the engine does not know of them."""

from __future__ import annotations

from corral.devices.completed_inventory import completed
from corral.model.inventory import Device, Inventory, Mismatch, Node, Taint
from corral.spec.cluster import load_cluster

GIB = 2**30


def counted_by_yarn(count: int, *, counted: bool = False) -> tuple[Device, ...]:
    """Devices of which an engine knows the number alone."""
    return tuple(Device(index, f"yarn/nm1:{index}", counted=counted) for index in range(count))


def node(name: str = "nm1", devices: tuple[Device, ...] = (), **fields: object) -> Node:
    return Node(f"yarn/{name}", devices=devices, cpu_millis=8000, memory_bytes=32 * GIB, **fields)  # type: ignore[arg-type]


def with_document(text: str, *nodes: Node) -> Inventory:
    return completed(Inventory("yarn", nodes), load_cluster(f"kind: Cluster\nengine: yarn\n{text}"))


DGX = """
node: {cpu: 1, memory: 1Gi, devices: {count: 4, model: A100, memory: 80Gi, cells: {pcie-switch: 2}}}
racks: {r1: {nodes: [nm1, nm2]}}
"""


def test_devices_that_an_engine_only_numbers_get_their_model_memory_and_cells() -> None:
    (found,) = with_document(DGX, node(devices=counted_by_yarn(4))).nodes
    assert found.ready and found.mismatches == ()
    assert found.cells == (("rack", "r1"),)
    assert [(each.model, each.memory_bytes, each.cells) for each in found.devices] == [
        ("A100", 80 * GIB, (("pcie-switch", str(index // 2)),)) for index in range(4)
    ]
    assert not any(each.described for each in found.devices)


def test_amounts_health_and_names_of_devices_stay_the_engines() -> None:
    taken = Device(0, "GPU-1", healthy=False, health_reason="another application holds it")
    (found,) = with_document(DGX, node(devices=(taken, *counted_by_yarn(4)[1:]))).nodes
    assert (found.cpu_millis, found.memory_bytes) == (8000, 32 * GIB)
    assert (found.devices[0].id, found.devices[0].healthy) == ("GPU-1", False)


def test_a_node_with_another_number_of_devices_is_not_ready_and_both_are_told() -> None:
    (found,) = with_document(DGX, node(devices=counted_by_yarn(2))).nodes
    assert not found.ready
    assert found.mismatches[0] == Mismatch("devices", "4 × A100", "2 × A100")


def test_what_the_engine_knows_of_a_device_is_compared_with_the_document() -> None:
    probed = tuple(Device(index, f"GPU-{index}", model="H100", memory_bytes=80 * GIB) for index in range(4))
    (found,) = with_document(DGX, node(devices=probed)).nodes
    assert found.mismatches == (Mismatch("devices", "4 × A100", "4 × H100"),)


def test_a_node_that_is_lost_keeps_its_own_reason() -> None:
    (found,) = with_document(DGX, node(devices=counted_by_yarn(2), ready=False, ready_reason="lost")).nodes
    assert (found.ready, found.ready_reason) == (False, "lost")


def test_links_of_a_document_are_taken_where_the_engine_knows_none() -> None:
    table = "        GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n"
    text = f"nodes: {{nm1: {{devices: {{count: 2, matrix: {table!r}}}}}}}\n".replace("'", '"')
    (found,) = with_document(text, node(devices=counted_by_yarn(2))).nodes
    assert found.links and found.links[0][1] == found.links[1][0] > 0
    own = ((0, 7), (7, 0))
    (kept,) = with_document(text, node(devices=counted_by_yarn(2), links=own)).nodes
    assert kept.links == own


def test_labels_and_taints_are_added_and_nodes_without_a_machine_left_out() -> None:
    text = "nodes: {nm1: {labels: {disk: fast}, taints: [{key: team, value: vision}]}, nm7: }\n"
    engine_taint = Taint("partition", "gold")
    (found,) = with_document(text, node(labels={"host": "h"}, taints=(engine_taint,))).nodes
    assert found.labels == {"host": "h", "disk": "fast"}
    assert [taint.key for taint in found.taints] == ["partition", "team"]


def test_labels_of_the_engine_name_cells_of_nodes_that_no_document_names() -> None:
    (found,) = with_document("levelLabels: {rack: example.org/rack}\n", node(labels={"example.org/rack": "r3"})).nodes
    assert found.cells == (("rack", "r3"),)


def test_a_node_that_the_engine_chooses_itself_is_in_no_cell() -> None:
    (found,) = with_document(DGX, node(devices=counted_by_yarn(4, counted=True))).nodes
    assert found.cells == () and all(each.cells == () for each in found.devices)
    assert {each.model for each in found.devices} == {"A100"}


def test_pinned_cells_are_those_of_the_document() -> None:
    text = (
        "cellTypes: {box: {child: A100, count: 2, node: true}}\n"
        "cells: [{type: box, name: nm1, pinned: vision}, {type: box, name: nm2}]\n"
    )
    found = with_document(text, node(devices=counted_by_yarn(2)), node("nm2", devices=counted_by_yarn(2)))
    assert [(pin.name, pin.devices) for pin in found.pinned] == [("vision", (("yarn/nm1", (0, 1)),))]
    assert all(each.ready and {device.chain for device in each.devices} == {"box"} for each in found.nodes)
