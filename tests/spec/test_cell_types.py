"""Cell types and chains of any depth, forests, mixed models on one node and explicit device numbers (H1)."""

from __future__ import annotations

import pytest

from corral.devices.described import described_inventory
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.topology_tree import Tree
from corral.spec.cluster import ClusterDocument, load_cluster
from corral.spec.errors import SpecError
from corral.spec.expanded_machines import PinnedCell, TypeLevel
from corral.spec.quota_check import census

TYPES = """
cellTypes:
  v100-switch: {level: pcie-switch, child: V100, count: 2}
  v100-socket: {level: numa, child: v100-switch, count: 2}
  dgx1: {child: v100-socket, count: 2, node: {cpu: 80, labels: {net: ib}}}
  dgx1-rack: {level: rack, child: dgx1, count: 2}
  dgx1-hall: {level: block, child: dgx1-rack, count: 2}
  small: {child: T4, count: 2, node: true}
models:
  V100: {memory: 32Gi}
  T4: {kind: gpu, memory: 16Gi}
"""


def cluster(cells: str, types: str = TYPES) -> ClusterDocument:
    return load_cluster(f"{types}cells:\n{cells}")


def test_a_chain_of_any_depth_becomes_levels_nodes_and_devices() -> None:
    """H1: types above and below the node are levels, and every leaf is a device."""
    machines = cluster("- {type: dgx1-hall, name: hall, nodes: 'n[1-4]'}").machines
    assert machines.levels == ("block", "rack", "node", "numa", "pcie-switch", "device")
    assert [(node.name, node.cells) for node in machines.nodes] == [
        ("n1", (("block", "hall"), ("rack", "hall/0"))),
        ("n2", (("block", "hall"), ("rack", "hall/0"))),
        ("n3", (("block", "hall"), ("rack", "hall/1"))),
        ("n4", (("block", "hall"), ("rack", "hall/1"))),
    ]
    first = machines.nodes[0]
    assert (first.cpu_millis, first.labels) == (80_000, {"net": "ib"})
    assert [device.index for device in first.devices] == list(range(8))
    assert first.devices[5].cells == (("numa", "1"), ("pcie-switch", "2"))
    assert {(device.model, device.memory_bytes, device.chain) for device in first.devices} == {
        ("V100", 32 * 2**30, "dgx1-hall")
    }
    assert machines.types["dgx1-rack"] == TypeLevel("rack", "V100")


def test_a_forest_of_chains_names_its_levels_once() -> None:
    machines = cluster("- {type: dgx1-rack, name: r1, nodes: [a, b]}\n- {type: small, name: c}").machines
    assert [(node.name, len(node.devices), node.cells) for node in machines.nodes] == [
        ("a", 8, (("rack", "r1"),)),
        ("b", 8, (("rack", "r1"),)),
        ("c", 2, ()),
    ]
    assert {device.chain for device in machines.nodes[2].devices} == {"small"}


def test_types_without_a_level_have_one_of_their_own_name() -> None:
    types = (
        "cellTypes:\n  4-NODE_x: {child: NODE, count: 2}\n  NODE: {child: PAIR, count: 2, node: true}\n"
        "  PAIR: {child: A, count: 2}\n"
    )
    machines = cluster("- {type: 4-NODE_x, nodes: [a, b]}", types).machines
    assert machines.levels == ("4-node-x", "node", "pair", "device")
    assert machines.nodes[0].cells == (("4-node-x", "4-node-x-1"),)
    assert machines.nodes[0].devices[3].cells == (("pair", "1"),)


def test_models_mix_on_one_node_with_numbers_of_their_own() -> None:
    """H1: a node in two cells has both their devices, each part a cell below the node."""
    machines = cluster("- {type: dgx1, name: n, devices: 0-7}\n- {type: small, name: n, devices: 8-9}").machines
    (node,) = machines.nodes
    assert [(device.index, device.model, device.chain) for device in node.devices[6:]] == [
        (6, "V100", "dgx1"),
        (7, "V100", "dgx1"),
        (8, "T4", "small"),
        (9, "T4", "small"),
    ]
    assert node.devices[0].cells == (("dgx1", "0"), ("numa", "dgx1/0"), ("pcie-switch", "dgx1/0"))
    assert node.devices[9].cells == (("small", "0"),)
    assert machines.types["small"] == TypeLevel("small", "T4")
    assert machines.levels.index("node") < machines.levels.index("dgx1") < machines.levels.index("numa")


def test_children_say_what_is_special_about_them() -> None:
    machines = cluster(
        "- type: dgx1-rack\n  name: r\n  children:\n  - a\n"
        "  - name: b\n    pinned: ours\n    children:\n    - devices: [0, 1, 4, 7]\n"
        "    - children: [{children: [6, 5]}, {devices: 2-3, pinned: pair}]"
    ).machines
    assert [device.index for device in machines.nodes[0].devices] == list(range(8))
    assert [(device.index, dict(device.cells)["pcie-switch"]) for device in machines.nodes[1].devices] == [
        (0, "0"), (1, "0"), (4, "1"), (7, "1"), (6, "2"), (5, "2"), (2, "3"), (3, "3"),
    ]  # fmt: skip
    assert machines.pinned == {
        "ours": PinnedCell("node", "dgx1", "b", (("b", (0, 1, 4, 7, 6, 5, 2, 3)),)),
        "pair": PinnedCell("pcie-switch", "v100-switch", "", (("b", (2, 3)),)),
    }


def test_pinned_cells_above_the_node_hold_all_their_devices() -> None:
    inventory = described_inventory(cluster("- {type: dgx1-rack, name: r, nodes: [a, b], pinned: p}"), "local")
    (pin,) = inventory.pinned
    assert (pin.name, pin.level, pin.type) == ("p", "rack", "dgx1-rack")
    assert pin.devices == (("local/a", tuple(range(8))), ("local/b", tuple(range(8))))


def test_many_equal_cells_are_one_line() -> None:
    machines = cluster("- {type: dgx1-rack, name: 'rack[001-512]', nodes: 'node[0001-1024]'}").machines
    assert len(machines.nodes) == 1024
    assert (machines.nodes[-1].name, machines.nodes[-1].cells) == ("node1024", (("rack", "rack512"),))
    assert machines.nodes[0].devices is machines.nodes[-1].devices


def test_racks_and_nodes_in_brackets_are_shared_out_evenly() -> None:
    machines = load_cluster(
        "node: {devices: 8}\n"
        "blocks: {'b[1-2]': {racks: {'r[1-4]': {nodes: 'n[01-16]'}}}}\n"
        "nodes: {'x[1-2]': {devices: 4}, 'y[1,7]z': {cells: {rack: s}}}\n"
    ).machines
    cells = {node.name: node.cells for node in machines.nodes}
    assert cells["n01"] == (("block", "b1"), ("rack", "r1"))
    assert cells["n08"] == (("block", "b1"), ("rack", "r2"))
    assert cells["n09"] == (("block", "b2"), ("rack", "r3"))
    assert [name for name in cells if not name.startswith("n")] == ["x1", "x2", "y1z", "y7z"]
    assert cells["y7z"] == (("rack", "s"),)


def test_labels_name_the_cells_that_nothing_else_does() -> None:
    machines = load_cluster(
        "levelLabels: {rack: topology.kubernetes.io/rack}\n"
        "nodes:\n  a: {labels: {topology.kubernetes.io/rack: r7}}\n"
        "  b: {cells: {rack: r8}, labels: {topology.kubernetes.io/rack: x}}\n"
    ).machines
    assert [node.cells for node in machines.nodes] == [(("rack", "r7"),), (("rack", "r8"),)]


def test_a_level_that_only_labels_name_is_the_widest() -> None:
    machines = load_cluster(
        "levelLabels: {zone: topology.kubernetes.io/zone}\n"
        "racks: {r: {nodes: {a: {labels: {topology.kubernetes.io/zone: z}}}}}\n"
    ).machines
    assert machines.levels[:4] == ("zone", "block", "rack", "node")
    assert machines.nodes[0].cells == (("zone", "z"), ("rack", "r"))


def test_a_large_cluster_is_indexed_from_a_line() -> None:
    """`bench place-65536` measures the time; this checks the result: every device of 512 racks, each rack a slice."""
    document = load_cluster(
        "node: {devices: {count: 8, cells: {pcie-switch: 2}}}\nracks: {'rack[001-064]': {nodes: 'node[0001-1024]'}}"
    )
    index = EngineIndex(Tree(described_inventory(document, "local")))
    rack = index.tree.cells[index.tree.levels.index("rack")]
    assert sum(mask.bit_count() for mask in index.free) == 8192
    assert len(rack.names) == 64 and {int(width) for width in rack.ends - rack.starts} == {16}


def test_cells_are_counted_by_level_type_and_chain() -> None:
    counts = census(
        cluster("- {type: dgx1-rack, name: r1, nodes: [a, b]}\n- {type: dgx1, name: c}\n- {type: small, name: d}")
    )
    assert counts["node", ""] == 4
    assert counts["dgx1", "V100"] == counts["node", "V100"] == 3
    assert (counts["dgx1-rack.dgx1", ""], counts["dgx1.dgx1", ""]) == (2, 1)
    assert counts["pcie-switch", "V100"] == 12


@pytest.mark.parametrize(
    ("types", "cells", "said"),
    [
        ("{a: {child: b}, b: {child: c}, c: {child: b}}", "[]", "cellTypes.a.child: goes round in a circle: b → c → b"),
        (
            "{a: {child: b, node: true}, b: {child: c, node: true}}",
            "[]",
            'cellTypes.a.node: it has the node "b" inside it; a node has no nodes inside',
        ),
        ("{a: {child: X, count: 2000, node: true}}", "[]", "cellTypes.a.count: a node of 2000 devices; 1024 are the most"),
        ("{a: {child: X, count: 0}}", "[]", "cellTypes.a.count: expected at least 1, got 0"),
        ("{a: {child: X, level: rak, node: true}}", "[]", "cellTypes.a.level: a node's level is node"),
        ("{a: {child: X, level: device}}", "[]", "cellTypes.a.level: device is a level of its own"),
        ("{n: {child: X, node: true}}", "[{type: m, name: a}]", 'cells[0].type: no cell type is called "m"'),
        ("{n: {child: X, node: true}}", "[{name: a}]", "cells[0].type: missing"),
        ("{n: {child: X, node: true}}", "[{type: n}]", "cells[0].name: missing; a node needs its name"),
        ("{n: {child: X, node: true}}", "[{type: n, name: A}]", 'cells[0].name: "A" is no name of a node'),
        (
            "{n: {child: X, node: true}, r: {child: n, count: 2}}",
            "[{type: r, nodes: [a, b, c]}]",
            "cells[0].nodes: 3 nodes are named, and r has 2",
        ),
        (
            "{n: {child: X, node: true}, r: {child: n, count: 2}}",
            "[{type: r, name: 'r[1-2]', nodes: 'n[1-3]'}]",
            "cells[0].nodes: 3 nodes are named, and 2 cells of 2 nodes",
        ),
        (
            "{n: {child: X, node: true}, r: {child: n, count: 2}}",
            "[{type: r}]",
            "cells[0]: missing the names of its nodes; write nodes with 2 names",
        ),
        (
            "{n: {child: X, node: true}, r: {child: n, count: 2}}",
            "[{type: r, children: [a]}]",
            "cells[0].children: 1 children are written, and each r has 2",
        ),
        (
            "{n: {child: X, node: true}, r: {child: n, count: 2}}",
            "[{type: r, children: [a, {type: r, name: b}]}]",
            'cells[0].children[1].type: the children of r are of type "n", not "r"',
        ),
        (
            "{n: {child: X, node: true}, r: {child: n}}",
            "[{type: r, name: q, nodes: a}, {type: r, name: q, nodes: b}]",
            'cells[1]: the r "q" is already there; cells have unique names',
        ),
        (
            "{n: {child: X, count: 2, node: true}}",
            "[{type: n, name: a}, {type: n, name: a, devices: 1-2}]",
            "cells[1]: device 1 of the node is already in another cell",
        ),
        (
            "{n: {child: X, count: 2, node: true}}",
            "[{type: n, name: a, devices: 0-2}]",
            "cells[0].devices: 3 devices are numbered, and the cell has 2",
        ),
        (
            "{n: {child: X, count: 2, node: true}}",
            "[{type: n, name: a, devices: '1,1'}]",
            'cells[0].devices: "1,1" has a number twice',
        ),
        ("{n: {child: X, node: true}}", "[{type: n, name: 'a[3-1]'}]", 'cells[0]: "a[3-1]": 3-1 counts backwards'),
        (
            "{n: {child: X, node: true}}",
            "[{type: n, name: 'a[1-999999999]'}]",
            'cells[0]: "a[1-999999999]" stands for more than 200000',
        ),
        (
            "{n: {child: X, node: true}}",
            "[{type: n, name: a, pinned: p}, {type: n, name: b, pinned: p}]",
            'cells[1].pinned: "p" is already the name of a pinned cell',
        ),
        (
            "{n: {child: X, node: true}}",
            "[{type: n, name: 'a[1-2]', pinned: p}]",
            "cells[0].pinned: 2 cells at once cannot have it",
        ),
        (
            "{n: {child: X, node: true}, r: {child: n}, s: {child: n}}",
            "[{type: r, name: q, children: [a]}, {type: n, name: a, devices: 0}]",
            "cells[1]: device 0 of the node is already in another cell",
        ),
        (
            "{a: {level: numa, child: b}, b: {level: rack, child: X}, n: {child: a, node: true}, "
            "c: {level: rack, child: d}, d: {level: numa, child: Y}, m: {child: c, node: true}}",
            "[{type: n, name: n1}, {type: m, name: m1}]",
            "cellTypes: the types put the levels",
        ),
    ],
)  # fmt: skip
def test_cells_that_cannot_be_are_refused_with_their_path(types: str, cells: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_cluster(f"cellTypes: {types}\ncells: {cells}")
    assert any(said in line for line in str(caught.value).splitlines()), caught.value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("racks: {'r[1-3]': {nodes: 'n[1-4]'}}", "4 nodes in racks of which there are 3: they do not divide evenly"),
        ("racks: {r: {nodes: 'n[1-'}}", "expected lower-case letters"),
        ("racks: {r: {nodes: 'n[]'}}", "numbers are written as 1-16 or 1-3,7"),
        ("racks: {r: {nodes: ['n[1-3]', n2]}}", 'the node "n2" is already there'),
        (f"{TYPES}cells: [{{type: small, name: a}}]\nnodes: [a]", 'the node "a" is among the racks or nodes too'),
        ("cellTypes: {a: {child: V10, node: true}}\nmodels: {V100: {}}", 'called "V10"; did you mean "V100"?'),
    ],
)
def test_names_that_cannot_be_are_refused(text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_cluster(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        (
            '{matrix: "GPU0 GPU1\\nGPU0 X NV4\\nGPU1 SYS X"}',
            "GPU0.GPU1: the table is not symmetric: NV4 there, SYS back",
        ),
        ('{count: 3, matrix: "GPU0\\nGPU0 X"}', "the matrix has 1 devices, and count says 3"),
        ('{cells: {numa: 1}, matrix: "GPU0\\nGPU0 X"}', "expected either matrix or cells"),
    ],
)
def test_a_matrix_that_cannot_be_is_refused_with_its_path(devices: str, said: str) -> None:
    """Bad input: a matrix that is not symmetric."""
    with pytest.raises(SpecError) as caught:
        load_cluster(f"nodes: {{n: {{devices: {devices}}}}}")
    assert "nodes.n.devices: " in str(caught.value) and said in str(caught.value)


def test_a_node_has_the_matrix_of_its_own_beside_nodes_with_common_devices() -> None:
    matrix = "GPU0 GPU1\\nGPU0 X NV4\\nGPU1 NV4 X"
    text = (
        "node: {devices: {count: 4, cells: {pcie-switch: 2}}}\n"
        f'racks: {{r1: {{nodes: [n1]}}, r2: {{nodes: {{n2: {{devices: {{count: 2, matrix: "{matrix}"}}}}}}}}}}\n'
    )
    first, second = load_cluster(text).machines.nodes
    assert first.links == () and len(first.devices) == 4
    assert second.links == ((0, 104), (104, 0))
