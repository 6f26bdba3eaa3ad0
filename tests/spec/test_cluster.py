"""A short description of machines expands to every node and device with its cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.spec.cluster import ClusterDocument, load_cluster
from corral.spec.errors import SpecError
from corral.spec.queue import QueueDocument

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster.yaml"


def test_the_example_is_two_racks_of_two_nodes_of_four_devices() -> None:
    cluster = load_cluster(EXAMPLE.read_text(), filename="cluster.yaml")
    assert [(node.name, node.cells) for node in cluster.nodes] == [
        ("node1", (("rack", "rack1"),)),
        ("node2", (("rack", "rack1"),)),
        ("node3", (("rack", "rack2"),)),
        ("node4", (("rack", "rack2"),)),
    ]
    for node in cluster.nodes:
        assert [device.index for device in node.devices] == [0, 1, 2, 3]
        assert [device.cells for device in node.devices] == [(("pcie-switch", str(n // 2)),) for n in range(4)]
        assert node.cpu_millis > 0 and node.memory_bytes > 0
    assert sum(len(node.devices) for node in cluster.nodes) == 16
    assert "default" in {queue.name for queue in cluster.queues}


def test_a_node_says_only_what_differs() -> None:
    cluster = load_cluster(
        "node: {cpu: 4, labels: {a: x}, devices: {count: 4, model: big, cells: {pcie-switch: 2}}}\n"
        "racks: {r: {nodes: {same: , more: {devices: 8, labels: {b: y}}, none: {devices: 0, cpu: 500m}}}}\n"
    )
    same, more, none = cluster.nodes
    assert (len(same.devices), len(more.devices), len(none.devices)) == (4, 8, 0)
    assert {device.model for device in more.devices} == {"big"}
    assert more.devices[7].cells == (("pcie-switch", "3"),)
    assert (same.cpu_millis, none.cpu_millis) == (4000, 500)
    assert (same.labels, more.labels) == ({"a": "x"}, {"a": "x", "b": "y"})


def test_cells_go_as_far_out_and_in_as_the_levels() -> None:
    cluster = load_cluster(
        "levels: [zone, block, rack, node, nvlink, pcie-switch, device]\n"
        "node: {devices: {count: 8, cells: {pcie-switch: 2, nvlink: 4}}}\n"
        "blocks: {b: {racks: {r: {nodes: [n1]}}}}\n"
        "nodes: {n2: {cells: {rack: s, zone: z}}}\n"
    )
    near, far = cluster.nodes
    assert near.cells == (("block", "b"), ("rack", "r"))
    assert far.cells == (("zone", "z"), ("rack", "s"))
    assert near.devices[5].cells == (("nvlink", "1"), ("pcie-switch", "2"))


def test_parents_come_before_their_queues_and_default_is_always_there() -> None:
    cluster = load_cluster("queues: {leaf: {parent: mid, limit: {devices: 4}}, mid: {parent: top}, top: {weight: 2}}")
    assert cluster.queues == (
        QueueDocument(name="default"),
        QueueDocument(name="top", weight=2.0),
        QueueDocument(name="mid", parent="top"),
        QueueDocument(name="leaf", parent="mid", limit={"devices": "4"}),
    )


def test_a_document_without_nodes_leaves_the_machine_as_found() -> None:
    assert load_cluster("kind: Cluster").nodes == ()
    assert ClusterDocument().queues == (QueueDocument(name="default"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("racks: [r]", "1:8: racks: expected a mapping (key: value), got a list"),
        ("nodes: {a: {device: 3}}", '1:13: nodes.a.device: unknown field; did you mean "devices"?'),
        ("nodes: [a, a]", '1:8: nodes: "a" is there twice; nodes have unique names'),
        ("nodes: [A]", "1:9: nodes[0]: expected lower-case letters"),
        (
            "racks: {r: {nodes: [a]}}\nnodes: [a]",
            '2:9: nodes[0]: the node "a" is already there; nodes have unique names',
        ),
        (
            "blocks: {b: {racks: {r: {nodes: [a]}}}}\nracks: {r: {nodes: [c]}}",
            '2:21: racks.r.nodes[0]: the rack "r" is in two places; cells have unique names',
        ),
        (
            "node: {devices: {count: 4, cells: {pcie-switch: 3}}}",
            "1:49: node.devices.cells.pcie-switch: cells of 3 devices do not divide the 4 around them evenly",
        ),
        (
            "node: {devices: {count: 8, cells: {numa: 2, pcie-switch: 4}}}",
            "1:58: node.devices.cells.pcie-switch: cells of 4 devices do not divide the 2 around them evenly",
        ),
        (
            "node: {devices: {count: 4, cells: {pcie-swich: 2}}}",
            '1:48: node.devices.cells.pcie-swich: not a level between node and device; did you mean "pcie-switch"?',
        ),
        (
            "nodes: {a: {cells: {rak: x}}}",
            '1:26: nodes.a.cells.rak: not a level above the node; did you mean "rack"?',
        ),
        (
            "levels: [rack, device]",
            "1:9: levels: expected levels outermost first, with node among them and device last",
        ),
        ("levels: [rack, rack, node, device]", '1:16: levels[1]: "rack" is already there'),
        ("queues: {a: {parent: b}, b: {parent: a}}", "1:22: queues.a.parent: a queue cannot be part of itself"),
        ("queues: {a: {parent: dflt}, default: }", "1:38: queues.default: expected a mapping"),
        ("queues: {a: {weight: 0}}", "1:22: queues.a.weight: expected more than 0, got 0"),
        ("kind: UnifiedJob", '1:7: kind: expected one of Cluster, got "UnifiedJob"'),
        ("", ": expected a cluster (a mapping of fields), got nothing"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_cluster(text)
    assert str(caught.value).splitlines()[0].startswith(f"cluster.yaml:{said}".replace("::", ":"))


def test_children_of_an_unknown_queue_are_told() -> None:
    with pytest.raises(SpecError, match='no queue is called "dflt"; did you mean "default"'):
        load_cluster("queues: {a: {parent: dflt}, default: {}}")
