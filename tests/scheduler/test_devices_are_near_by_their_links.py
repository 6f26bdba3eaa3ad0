"""The link matrix of a vendor's tool decides which devices of a node a task gets (Y3, H5)."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.model.inventory import Device, Inventory, Node
from corral.model.requests import TopologyRequest
from corral.scheduler import Cluster, NodesSeen
from corral.spec.link_table import read_table
from tests.examples import examples
from tests.scheduler.machines import gang, occupy, place, role

LEVELS = ("node", "numa", "nvlink", "pcie-switch", "device")


def machine(text: str, *taken: int) -> Cluster:
    """One node wired as in a table, some of its devices taken."""
    wiring = read_table(text)
    devices = tuple(Device(at, f"GPU-{at}", cells=cells) for at, cells in enumerate(wiring.cells()))
    target = Cluster()
    target.apply(NodesSeen(Inventory("local", (Node("local/n", devices=devices, links=wiring.links),), LEVELS)))
    occupy(target, "n", *taken)
    return target


def chosen(target: Cluster, count: int, **topology: str) -> tuple[int, ...]:
    """The devices that a task of `count` gets."""
    placement = place(target, gang("job", role(1, count, topology=TopologyRequest(**topology))))  # type: ignore[arg-type]
    assert placement is not None
    return placement.tasks[0].devices


def table(words: dict[tuple[int, int], str], count: int, other: str, numa: int = 0) -> str:
    """A table of `nvidia-smi topo -m`: given words for some pairs, `other` for the rest."""
    lines = ["\t" + "\t".join([*(f"GPU{at}" for at in range(count)), "CPU Affinity", "NUMA Affinity"])]
    for a in range(count):
        row = [" X " if a == b else words.get((min(a, b), max(a, b)), other) for b in range(count)]
        lines.append("\t".join([f"GPU{a}", *row, "0-31", str(a // numa if numa else 0)]))
    return "\n".join(lines)


PAIRS = table({(0, 1): "PIX", (2, 3): "PIX", (0, 2): "SYS"}, 4, "SYS", numa=2)
CROSSED = table({(0, 3): "PIX", (1, 2): "PIX"}, 4, "SYS")
BRIDGED = table({(0, 1): "PIX", (2, 3): "PIX", (0, 2): "NV4", (1, 3): "NV4"}, 4, "SYS")
DGX1 = table(
    {(0, 1): "NV1", (0, 2): "NV1", (0, 3): "NV2", (0, 4): "NV2", (1, 2): "NV2", (1, 3): "NV1", (1, 5): "NV2",
     (2, 3): "NV2", (2, 6): "NV1", (3, 7): "NV1", (4, 5): "NV1", (4, 6): "NV1", (4, 7): "NV2", (5, 6): "NV2",
     (5, 7): "NV1", (6, 7): "NV2"}, 8, "SYS",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "taken", "count", "expected"),
    [
        (PAIRS, (), 2, (0, 1)),
        (PAIRS, (0,), 2, (2, 3)),
        (CROSSED, (), 2, (1, 2)),
        (CROSSED, (1,), 2, (0, 3)),
        (BRIDGED, (), 2, (0, 2)),
        (BRIDGED, (0,), 2, (1, 3)),
        (DGX1, (), 4, (0, 1, 2, 3)),
        (DGX1, (1,), 4, (4, 5, 6, 7)),
        (DGX1, (0, 1, 2, 3), 2, (5, 6)),
        (DGX1, (4, 7, 0, 3), 2, (1, 2)),
    ],
)
def test_y3_pix_beats_sys_and_links_beat_both(
    text: str, taken: tuple[int, ...], count: int, expected: tuple[int, ...]
) -> None:
    assert chosen(machine(text, *taken), count) == expected


@pytest.mark.parametrize("word", ["NV12", "NV18"])
def test_y3_with_switches_between_all_the_same_socket_wins(word: str) -> None:
    """All links are equal (A100: NV12, H100 and H200: NV18), so the NUMA node inside the island decides."""
    text = table({}, 8, word, numa=4)
    assert chosen(machine(text), 4) == (0, 1, 2, 3)
    assert chosen(machine(text, 1), 4) == (4, 5, 6, 7)
    assert chosen(machine(text, 0, 1, 4), 3) == (5, 6, 7)
    assert chosen(machine(text, 0, 4), 6) == (1, 2, 3, 5, 6, 7)


def test_a_required_level_holds_though_another_is_wider() -> None:
    """The NVLink island is the whole node: it may not replace the required NUMA node."""
    text = table({}, 8, "NV18", numa=4)
    assert chosen(machine(text, 3, 4), 3, required="numa", preferred="pcie-switch") == (0, 1, 2)
    assert place(machine(text, 3, 4), gang("job", role(1, 4), required="numa", preferred="nvlink")) is None
    assert chosen(machine(text, 3, 4), 6, required="nvlink") == (0, 1, 2, 5, 6, 7)
    far = place(machine(text, 3, 4), gang("job", role(1, 4), preferred="numa"))
    assert far is not None
    assert far.notes == ("the job preferred one NUMA node; it shares one NVLink island",)


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_h5_no_other_set_has_a_lower_common_ancestor(data: st.DataObject) -> None:
    """Compared with every set of free devices, on nodes with random uneven nested cells."""
    count = data.draw(st.integers(1, 7))
    outer = [data.draw(st.integers(0, 1)) for _ in range(count)]
    inner = [(number, data.draw(st.integers(0, 1))) for number in outer]
    devices = tuple(
        Device(at, f"d{at}", cells=(("numa", str(outer[at])), ("pcie-switch", f"{inner[at]}"))) for at in range(count)
    )
    target = Cluster()
    target.apply(NodesSeen(Inventory("local", (Node("local/n", devices=devices),), LEVELS)))
    taken = data.draw(st.sets(st.integers(0, count - 1), max_size=count - 1))
    occupy(target, "n", *sorted(taken))
    free = sorted(set(range(count)) - taken)
    wanted = data.draw(st.integers(1, len(free)))

    def height(members: tuple[int, ...]) -> int:
        """0 for a single device, 1 inside one switch, 2 inside one NUMA node, 3 beyond."""
        if len(members) == 1:
            return 0
        return 1 if len({inner[at] for at in members}) == 1 else 2 if len({outer[at] for at in members}) == 1 else 3

    assert height(chosen(target, wanted)) == min(height(members) for members in combinations(free, wanted))
