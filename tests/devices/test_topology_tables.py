"""The output of `nvidia-smi topo -m` and similar tools becomes a link quality per pair, and cells below the node (Y3)."""

from __future__ import annotations

import pytest

from corral.kernel.errors import InvalidInput
from corral.spec.device_topology import Wiring
from corral.spec.link_quality import NVLINK, QUALITY, SAME_SWITCH, groups, islands, quality
from corral.spec.link_table import read_table

# A table in the form of the vendor's documentation: four GPUs, two switches, a network card, affinities.
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


def switched(word: str, devices: int = 8, *, cards: bool = True) -> str:
    """A machine whose NVSwitches join all GPUs; each PCIe switch has two GPUs and a card, each socket half of all."""
    gpus = [f"GPU{index}" for index in range(devices)]
    nics = [f"NIC{index}" for index in range(devices // 2)] if cards else []
    lines = ["\t" + "\t".join([*gpus, *nics, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for a, name in enumerate(gpus):
        words = [" X " if a == b else word for b in range(devices)]
        words += ["PXB" if a // 2 == nic else "SYS" for nic in range(len(nics))]
        lines.append("\t".join([name, *words, "0-47", str(a * 2 // devices), "N/A"]))
    return "\n".join(lines)


DGX1 = """
        GPU0    GPU1    GPU2    GPU3    GPU4    GPU5    GPU6    GPU7
GPU0     X      NV1     NV1     NV2     NV2     SYS     SYS     SYS
GPU1    NV1      X      NV2     NV1     SYS     NV2     SYS     SYS
GPU2    NV1     NV2      X      NV2     SYS     SYS     NV1     SYS
GPU3    NV2     NV1     NV2      X      SYS     SYS     SYS     NV1
GPU4    NV2     SYS     SYS     SYS      X      NV1     NV1     NV2
GPU5    SYS     NV2     SYS     SYS     NV1      X      NV2     NV1
GPU6    SYS     SYS     NV1     SYS     NV1     NV2      X      NV2
GPU7    SYS     SYS     SYS     NV1     NV2     NV1     NV2      X
"""

AMD = """
       GPU0         GPU1         GPU2
GPU0   0            XGMI         PCIE
GPU1   XGMI         0            PCIE
GPU2   PCIE         PCIE         0
"""

ASCEND = """
\tNPU0\tNPU1\tNPU2\tNPU3\tCPU Affinity
NPU0\tX\tHCCS\tSYS\tSYS\t0-23
NPU1\tHCCS\tX\tSYS\tSYS\t0-23
NPU2\tSYS\tSYS\tX\tHCCS\t24-47
NPU3\tSYS\tSYS\tHCCS\tX\t24-47
"""


def cells(text: str, level: str) -> list[str]:
    """The name of each device's cell at a level, "" where it has none."""
    return [dict(device).get(level, "") for device in read_table(text).cells()]


def test_a_table_becomes_a_matrix() -> None:
    assert read_table(TABLE).links == (
        (0, NVLINK + 4, QUALITY["PXB"], QUALITY["SYS"]),
        (NVLINK + 4, 0, QUALITY["PIX"], QUALITY["SYS"]),
        (QUALITY["PXB"], QUALITY["PIX"], 0, QUALITY["NODE"]),
        (QUALITY["SYS"], QUALITY["SYS"], QUALITY["NODE"], 0),
    )
    assert read_table(TABLE).numa == (0, 0, 1, 1)


def test_words_are_ranked_as_they_are_near() -> None:
    order = ["X", "SYS", "NODE", "PHB", "PXB", "PIX", "NV1", "NV2", "NV12", "NV18"]
    assert sorted(order, key=quality) == order
    assert quality("SOC") == quality("SYS") and quality("XGMI") == quality("HCCS") > quality("PIX")


@pytest.mark.parametrize("word", ["NV4", "NV6", "NV12", "NV18"])
def test_switches_between_all_gpus_are_one_island_around_both_sockets(word: str) -> None:
    """Y3: NV12 (A100) and NV18 (H100, H200) are read; shared network cards show the PCIe switches behind."""
    assert cells(switched(word), "nvlink") == ["0"] * 8
    assert cells(switched(word), "numa") == ["0"] * 4 + ["1"] * 4
    assert cells(switched(word), "pcie-switch") == ["0", "0", "1", "1", "2", "2", "3", "3"]
    assert [level for level, _ in read_table(switched(word)).cells()[0]] == ["nvlink", "numa", "pcie-switch"]


def test_what_a_table_does_not_tell_is_left_out() -> None:
    """Behind NVLink a table shows a PCIe switch only if a network card shares it."""
    assert cells(switched("NV18", cards=False), "pcie-switch") == [""] * 8
    assert cells(DGX1, "numa") == [""] * 8


def test_a_mesh_of_some_links_has_the_largest_islands_that_are_whole() -> None:
    """DGX-1: every GPU is linked to four others, three of which are all linked to each other."""
    assert cells(DGX1, "nvlink") == ["0"] * 4 + ["1"] * 4


def test_other_vendors_words_make_islands_too() -> None:
    assert cells(AMD, "nvlink") == ["0", "0", "1"]
    assert cells(ASCEND, "nvlink") == ["0", "0", "1", "1"]
    assert cells(AMD, "pcie-switch") == [""] * 3


def test_a_bridge_between_two_pcie_switches_is_nearer_than_either() -> None:
    pairs = "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\tX\tPIX\tNV12\tSYS\nGPU1\tPIX\tX\tSYS\tNV12\n"
    pairs += "GPU2\tNV12\tSYS\tX\tPIX\nGPU3\tSYS\tNV12\tPIX\tX\n"
    wiring = read_table(pairs)
    assert islands(wiring.links) == [0, 1, 0, 1]
    bridged = Wiring(wiring.names, wiring.links, ((0, 50, 10, 10), (50, 0, 10, 10), (10, 10, 0, 50), (10, 10, 50, 0)))
    assert [dict(each)["pcie-switch"] for each in bridged.cells()] == ["0", "1", "2", "3"]


def test_bridged_pairs_on_one_switch_leave_it_whole() -> None:
    near = tuple(tuple(0 if a == b else NVLINK + 4 if a // 2 == b // 2 else 50 for b in range(4)) for a in range(4))
    pcie = tuple(tuple(0 if a == b else 50 for b in range(4)) for a in range(4))
    assert [dict(each) for each in Wiring(("",) * 4, near, pcie).cells()] == [
        {"numa": "0", "nvlink": str(at // 2), "pcie-switch": "0"} for at in range(4)
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t: the table has no line of devices (GPU0, GPU1, …)"),
        ("GPU0 GPU1\nGPU0 X NV1\n", "t: the table does not have one line for each of its columns"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV1\nGPU1\t\tX\n", "t:3:1: GPU1.GPU0: missing; the line is cut short"),
        ("GPU0 GPU1\nGPU0 X QQQ\nGPU1 NV1 X\n", 't:2:1: GPU0.GPU1: "QQQ" is no link of a topology table'),
        ("GPU0 GPU1\nGPU0 X NV0\nGPU1 NV0 X\n", '"NV0" is no link'),
        (
            "GPU0 GPU1 GPU2\nGPU0 X NV4 SYS\nGPU1 NV4 X PIX\nGPU2 SYS PXB X\n",
            "t:3:1: GPU1.GPU2: the table is not symmetric: PIX there, PXB back",
        ),
        (
            "GPU0 GPU1\nGPU0 X NV12\nGPU1 NV4 X\n",
            "t:2:1: GPU0.GPU1: the table is not symmetric: NV12 there, NV4 back",
        ),
    ],
)
def test_a_broken_table_is_refused_where_it_is_broken(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_table(text, "t")
    assert said in caught.value.message


def test_groups_follow_pcie_links_only() -> None:
    assert groups(read_table(TABLE).links, SAME_SWITCH) == [0, 0, 0, 1]
    far = ((0, NVLINK + 4), (NVLINK + 4, 0))
    assert groups(far, SAME_SWITCH) == [0, 1]
    assert groups((), SAME_SWITCH) == []


def test_islands_of_many_devices_are_found_without_trying_every_set() -> None:
    size = 64
    all_linked = tuple(tuple(0 if a == b else NVLINK + 18 for b in range(size)) for a in range(size))
    assert islands(all_linked) == [0] * size
    halves = tuple(tuple(0 if a == b or a % 2 != b % 2 else NVLINK + 1 for b in range(size)) for a in range(size))
    assert islands(halves) == [0, 1] * (size // 2)
    assert islands(((0, 50), (50, 0))) == []
