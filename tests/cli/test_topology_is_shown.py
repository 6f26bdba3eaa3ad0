"""`corral topology` shows the cells that it reads from a link matrix or a topology.conf."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from corral.cli.topology import topology_command
from corral.devices.described import described_inventory
from corral.spec.cluster import load_cluster
from corral.spec.link_table import read_table
from tests.devices.test_topology_tables import DGX1, TABLE, switched
from tests.spec.test_switches import TREE


def shown(text: str, *options: str) -> str:
    done = CliRunner().invoke(topology_command, ["-", *options], input=text, standalone_mode=False)
    assert done.exception is None, done.exception
    return done.output


def test_a_matrix_is_drawn_as_its_tree() -> None:
    assert shown(switched("NV18", 4)) == (
        "node with 4 devices\n"
        "└─ nvlink 0\n"
        "   ├─ numa 0\n"
        "   │  └─ pcie-switch 0: GPU0 GPU1\n"
        "   └─ numa 1\n"
        "      └─ pcie-switch 1: GPU2 GPU3\n"
        "\n"
        "6 pairs: 18 links of their own (NVLink, XGMI, HCCS)\n"
    )
    assert "├─ nvlink 0: GPU0 GPU1 GPU2 GPU3\n" in shown(DGX1)


def test_switches_are_drawn_with_the_nodes_as_they_are_written() -> None:
    assert shown(TREE) == (
        "network\n├─ block top\n│  ├─ rack s0: tux[0-5]\n│  └─ rack s1: tux[6-11],cpu1\n"
        "└─ block other\n   └─ rack s2: tux[12-17]\n"
    )


def test_the_document_that_is_printed_says_the_same() -> None:
    for table in (switched("NV12"), DGX1, TABLE):
        document = load_cluster(shown(table, "-o", "yaml"))
        (node,) = described_inventory(document, "local").nodes
        wiring = read_table(table)
        assert node.links == wiring.links
        assert tuple(device.cells for device in node.devices) == wiring.cells()
    assert len(load_cluster(shown(TREE, "-o", "yaml")).nodes) == 19


def test_a_matrix_that_is_not_symmetric_is_refused_with_its_path(tmp_path: Path) -> None:
    file = tmp_path / "matrix.txt"
    file.write_text("GPU0 GPU1\nGPU0 X NV4\nGPU1 SYS X\n")
    done = CliRunner().invoke(topology_command, [str(file)], standalone_mode=False)
    assert "GPU0.GPU1: the table is not symmetric: NV4 there, SYS back" in str(done.exception)
