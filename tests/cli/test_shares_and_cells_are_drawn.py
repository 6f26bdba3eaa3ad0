"""Shares and cells on a terminal are readable without colours, by shapes and words."""

from __future__ import annotations

from typing import Any

import msgspec

from corral.cli.draw import cell_tree, queue_bar
from corral.cli.queues import own, spoken, wants
from corral.model.queue_views import CellDevice, CellState, DeviceUse, LineEntry, QueueStanding


def json(value: object) -> Any:
    """The value as the client decodes it."""
    return msgspec.to_builtins(value)


def use(standing: str = "guaranteed", **more: Any) -> DeviceUse:
    return DeviceUse("j1", "train", "ada", "lab", "worker", 0, standing=standing, **more)


def device(index: int, state: str = "free", *uses: DeviceUse, **more: Any) -> CellDevice:
    return CellDevice(index, f"d{index}", "gpu", "a100", state, uses=uses, **more)


def a_node(**more: Any) -> CellState:
    switches = (
        CellState(
            "e|s:n/0", "pcie-switch", "0", 2, inside=2, holds=(device(0, "used", use()), device(1, "leaving", use()))
        ),
        CellState(
            "e|s:n/1", "pcie-switch", "1", 2, inside=2, holds=(device(2), device(3, "unhealthy", reason="XID 79"))
        ),
    )
    return CellState("e|node:e/n", "node", "n", 4, used=2, queues={"lab": 2}, inside=2, cells=switches, **more)


def test_a_bar_tells_own_borrowed_idle_and_what_the_limit_leaves() -> None:
    assert queue_bar(6, 0, 12, 24, 24) == "█" * 6 + "░" * 6 + "·" * 12
    assert queue_bar(12, 6, 6, None, 24) == "█" * 6 + "▓" * 6 + " " * 12
    assert queue_bar(1, 1, 0, None, 10_000).startswith("▓"), "what is there is seen, however little"
    assert queue_bar(0, 0, 0, None, 0) == ""
    assert {len(queue_bar(used, used // 2, 7, 9, 11)) for used in range(12)} == {24}


def test_a_node_is_a_line_with_a_mark_for_each_device() -> None:
    rack = CellState("e|rack:r", "rack", "r", 4, inside=1, cells=(a_node(owner="lab", owners={"lab": 4}),))
    first, second = cell_tree(json(rack))
    assert first.startswith("rack r  0/4 used")
    assert second == "└─ node n  2/4 used  bound to lab  by lab 2  ●◌ ○✘"


def test_a_node_that_is_asked_for_shows_each_device_with_its_job() -> None:
    lines = list(cell_tree(json(a_node(state="cordoned", reason="new cables"))))
    assert "cordoned: new cables" in lines[0]
    assert lines[2] == "│  ├─ ● device 0  a100  train worker-0 (ada, lab, guaranteed)"
    assert lines[-1] == "   └─ ✘ device 3  a100  unhealthy  XID 79"


def test_guests_and_parts_of_devices_are_told_apart() -> None:
    shared = device(0, "used", use("guest", share=25, leaving=True))
    (_, line) = cell_tree(json(CellState("e|node:e/n", "node", "n", 1, inside=1, holds=(shared,))))
    assert line == "└─ ◐ device 0  a100  train worker-0 25% (ada, lab, guest, leaving)"


def test_what_was_left_out_is_a_command_away() -> None:
    rack = CellState("e|rack:r", "rack", "r", 400, inside=16, cells=(a_node(),))
    assert list(cell_tree(json(rack)))[-1] == "└─ … 15 more: corral cells 'e|rack:r'"


def test_amounts_are_said_in_their_units() -> None:
    assert [spoken("cpu", 2500), spoken("memory", 2**30), spoken("devices", 2.6667), spoken("devices", 0)] == [
        "2500m", "1Gi", "2.667", "",
    ]  # fmt: skip
    assert [spoken("devices", 0.5), spoken("devices", 65_536.5), spoken("devices/A100", 16_384)] == [
        "0.5", "65536.5", "16384",
    ]  # fmt: skip
    owner = json(QueueStanding("lab", deserved={"devices": 4, "cpu": 9}, owned_devices=8))
    assert (own(owner, "devices"), own(owner, "cpu")) == (12, 9)


def test_what_a_gang_wants_is_said_in_few_words() -> None:
    entry = LineEntry(1, "j", "train", "ada", "lab", 10, "", tasks=4, devices=16, model="a100", level="rack")
    assert wants(json(entry)) == "16 a100 in 4 tasks, one rack"
    assert (
        wants(json(msgspec.structs.replace(entry, devices=0, cpu_millis=4000, level="", grows=True)))
        == "4 cpu in 4 tasks more"
    )
