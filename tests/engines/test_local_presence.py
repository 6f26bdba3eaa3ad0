"""The engine watches the machine while it runs: failed devices are reported, and running tasks go on (Y9)."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from corral.engines.local.device_monitor import Presence
from corral.model.inventory import Device, Inventory, Node
from corral.model.launch import Exited, InventoryChanged
from tests.engines.local_harness import FIRST, NODE, Harness, launch


def machine(*, bad: str = "") -> Inventory:
    devices = tuple(
        Device(at, f"GPU-{at}", healthy=not (bad and at == 0), health_reason=bad if at == 0 else "") for at in range(2)
    )
    return Inventory("local", (Node(NODE, devices=devices),))


async def test_a_device_that_fails_is_reported_and_its_task_keeps_running(tmp_path: Path) -> None:
    """Y9: uncorrectable errors hide the device from new jobs; the job on it is left alone."""
    seen = [machine()]
    async with Harness(tmp_path, nodes=()) as harness:
        presence = Presence(harness.engine.set_inventory)
        presence.follow(lambda: seen[-1])
        await harness.engine.start(launch("sleep", "60", devices=machine().nodes[0].devices[:1]))
        await harness.started(FIRST)
        seen.append(machine(bad="3 uncorrectable memory errors since the driver was loaded"))
        await presence.look_again()
        (node,) = (await harness.engine.inventory()).nodes
        assert [device.healthy for device in node.devices] == [False, True]
        assert not any(isinstance(event, Exited) for event in harness.seen)
        await harness.engine.stop(FIRST, grace_seconds=0)
        await harness.exited(FIRST)
        assert sum(isinstance(event, InventoryChanged) for event in harness.seen) == 2


async def test_a_look_that_fails_leaves_what_was_seen() -> None:
    told: list[Inventory] = []
    looks = iter([machine()])

    def look() -> Inventory:
        for seen in looks:
            return seen
        raise RuntimeError("the driver is being updated")

    presence = Presence(told.append)
    presence.follow(look)
    await presence.look_again()
    assert told == [machine()]


async def test_a_device_that_vanishes_keeps_its_place() -> None:
    told: list[Inventory] = []
    whole = machine()
    seen = [whole]
    presence = Presence(told.append)
    presence.follow(lambda: seen[-1])
    (node,) = whole.nodes
    left = (structs.replace(node.devices[1], index=0),)
    seen.append(structs.replace(whole, nodes=(structs.replace(node, devices=left),)))
    await presence.look_again()
    assert [(device.index, device.id, device.healthy) for device in told[-1].nodes[0].devices] == [
        (0, "GPU-0", False),
        (1, "GPU-1", True),
    ]


async def test_what_depends_on_no_machine_is_looked_at_once() -> None:
    told: list[Inventory] = []
    looks = iter([machine(), machine(bad="broken")])
    presence = Presence(told.append)
    presence.follow(lambda: next(looks), again=False)
    await presence.look_again()
    assert told == [machine()]
