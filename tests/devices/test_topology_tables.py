"""What `nvidia-smi topo -m` prints becomes one number a pair, and groups of devices on one switch."""

from __future__ import annotations

import pytest

from corral.devices.links import NVLINK, QUALITY, SAME_SWITCH, groups, parse_table, quality

# The shape of a table as the vendor's documentation shows it: four GPUs, two switches, a network card, affinities.
TABLE = """
\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m
GPU0\t X \tNV4\tPXB\tSYS\tPIX\t0-31\t0
GPU1\tNV4\t X \tPIX\tSYS\tPIX\t0-31\t0
GPU2\tPXB\tPIX\t X \tNODE\tSYS\t32-63\t1
GPU3\tSYS\tSYS\tNODE\t X \tSYS\t32-63\t1
NIC0\tPIX\tPIX\tSYS\tSYS\t X

Legend:
  X    = Self
  SYS  = Connection traversing PCIe
"""


def test_a_table_becomes_a_matrix() -> None:
    assert parse_table(TABLE) == (
        (0, NVLINK + 4, QUALITY["PXB"], QUALITY["SYS"]),
        (NVLINK + 4, 0, QUALITY["PIX"], QUALITY["SYS"]),
        (QUALITY["PXB"], QUALITY["PIX"], 0, QUALITY["NODE"]),
        (QUALITY["SYS"], QUALITY["SYS"], QUALITY["NODE"], 0),
    )


def test_words_are_ranked_as_they_are_near() -> None:
    order = ["SYS", "NODE", "PHB", "PXB", "PIX", "NV1", "NV2", "NV12", "NV18"]
    assert sorted(order, key=quality) == order


@pytest.mark.parametrize("text", ["", "GPU0 GPU1\nGPU0 X NV1\n", "GPU0\nGPU0\n", "GPU0\nGPU0 QQQ\n"])
def test_a_broken_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"table|line|link"):
        parse_table(text)


def test_groups_follow_pcie_links_only() -> None:
    assert groups(parse_table(TABLE), SAME_SWITCH) == [0, 0, 0, 1]
    far = ((0, NVLINK + 4), (NVLINK + 4, 0))
    assert groups(far, SAME_SWITCH) == [0, 1]
    assert groups((), SAME_SWITCH) == []
