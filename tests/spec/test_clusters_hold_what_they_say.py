"""A document's cells become exactly its machines; any other document is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.devices.described import described_inventory
from corral.kernel.units import DEVICE
from corral.scheduler.cluster.topology_tree import Tree
from corral.spec import hostlists
from corral.spec.cluster import load_cluster
from corral.spec.configuration_file import load_document
from corral.spec.errors import SpecError
from corral.spec.quota_check import capacity, census
from tests.examples import examples

Document = dict[str, Any]


@st.composite
def forests(draw: st.DrawFn) -> tuple[Document, dict[str, list[int]]]:
    """A document with up to three chains of random depth, and the expected device numbers by node."""
    types: Document = {}
    cells: list[Document] = []
    wanted: dict[str, list[int]] = {}
    for chain in range(draw(st.integers(1, 3))):
        below = [f"c{chain}-{depth}" for depth in range(draw(st.integers(0, 2)))]
        above = [f"u{chain}-{depth}" for depth in range(draw(st.integers(0, 2)))]
        sizes = [draw(st.integers(1, 3)) for _ in range(len(below) + len(above) + 1)]
        names = [*above, f"node{chain}", *below]
        for at, (name, size) in enumerate(zip(names, sizes, strict=True)):
            child = names[at + 1] if at + 1 < len(names) else f"M{chain}"
            types[name] = {"child": child, "count": size} | ({"node": True} if name.startswith("node") else {})
        nodes = leaves = 1
        for size in sizes[: len(above)]:
            nodes *= size
        for size in sizes[len(above) :]:
            leaves *= size
        copies = draw(st.integers(1, 3))
        first = draw(st.integers(0, 4)) if draw(st.booleans()) else 0
        total = nodes * copies
        cell: Document = {"type": names[0], "nodes": f"n{chain}-[01-{total:02}]"}
        if above:
            cell["name"] = f"top{chain}-[1-{copies}]"
        else:
            cell = {"type": names[0], "name": f"n{chain}-[01-{total:02}]"}
            if first:
                cell["devices"] = f"{first}-{first + leaves - 1}"
        numbers = range(first, first + leaves) if not above else range(leaves)
        wanted |= {f"n{chain}-{number:02}": list(numbers) for number in range(1, total + 1)}
        cells.append(cell)
    return {"kind": "Cluster", "cellTypes": types, "cells": cells}, wanted


@given(forests())
def test_every_leaf_is_a_device_of_its_node_and_every_cell_is_counted(
    drawn: tuple[Document, dict[str, list[int]]],
) -> None:
    """H1, for random chains: all leaves, under their numbers, in cells of their types, and no others."""
    document, wanted = drawn
    cluster = load_cluster(document)
    assert {node.name: [device.index for device in node.devices] for node in cluster.nodes} == wanted
    counts = census(cluster)
    total = sum(map(len, wanted.values()))
    assert counts["device", ""] == total
    assert capacity(cluster)["devices"] == total * DEVICE
    tree = Tree(described_inventory(cluster, "local"))
    assert sum(layout.all.bit_count() for layout in tree.layouts) == total
    for name, rule in document["cellTypes"].items():
        if rule["child"] in document["cellTypes"]:
            assert counts[name, ""] * rule["count"] == counts[rule["child"], ""]


@given(forests())
def test_a_document_that_was_written_out_is_the_same_cluster(
    drawn: tuple[Document, dict[str, list[int]]],
) -> None:
    """Cells written as a range equal the same cells written one by one."""
    document, _ = drawn
    alone: list[Document] = []
    for cell in document["cells"]:
        names = hostlists.expand(cell["name"])
        nodes = hostlists.expand(cell["nodes"]) if "nodes" in cell else []
        each = len(nodes) // len(names)
        for at, name in enumerate(names):
            part = {"nodes": nodes[at * each : (at + 1) * each]} if nodes else {}
            alone.append({**cell, "name": name, **part})
    written = load_cluster({**document, "cells": alone})
    assert written.nodes == load_cluster(document).nodes


@given(st.lists(st.integers(0, 40), min_size=1, max_size=20, unique=True), st.sampled_from(["node", "r[1-2]n", "a-"]))
def test_names_in_brackets_are_the_names_one_by_one(numbers: list[int], prefix: str) -> None:
    text = f"{prefix}[{','.join(map(str, numbers))}]"
    assert hostlists.expand(text) == [f"{name}{number}" for name in hostlists.expand(prefix) for number in numbers]


@pytest.mark.parametrize(
    "text", ["a[", "a]", "a[]", "a[1-]", "a[-1]", "a[1-2-3]", "a[x]", "a[[1]]", "a[1-1000000000]", "a[9-1]"]
)
def test_brackets_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"brackets|numbers|backwards|stands for more"):
        hostlists.expand(text)


def test_brackets_are_bounded_before_they_are_written_out() -> None:
    with pytest.raises(ValueError, match="stands for more than 200000 names"):
        hostlists.expand("a[1-1000]b[1-1000]c[1-1000]")
    with pytest.raises(SpecError, match="stands for more than"):
        load_cluster({"racks": {"r[1-200000]": {"nodes": "n[1-200000]x[1-2]"}}})


MEANT = """
kind Cluster Queue Policy VirtualCluster cellTypes cells a b node child count type name nodes n[1-3] children devices 0-7
pinned level numa racks r[1-2] levels models queues parent limit deserved guaranteed cpu matrix levelLabels source found
physicalCluster virtualClusters hivedscheduler config preemption [
"""
WORDS = st.sampled_from([*MEANT.split(), "GPU0 GPU1\nGPU0 X NV4\nGPU1 SYS X", ""])
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 3000), st.floats(allow_nan=False), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=5)),
    max_leaves=25,
)


@settings(max_examples=examples(200))
@given(st.dictionaries(WORDS, JUNK, max_size=6), st.sampled_from(["Cluster", "Queue", "Policy", "VirtualCluster", ""]))
def test_anything_else_is_refused_and_nothing_breaks(document: Document, kind: str) -> None:
    """Bad input: one clear refusal, whatever was written."""
    try:
        load_document({**document, "kind": kind} if kind else document)
    except SpecError as error:
        assert error.problems
