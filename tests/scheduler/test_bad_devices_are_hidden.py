"""A bad device is hidden from new gangs and stays with its gang; a node in doubt accepts no gang (Y9)."""

from __future__ import annotations

from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.inventory import Mismatch, Node
from corral.scheduler import NodesSeen, TasksReleased
from tests.scheduler.machines import cluster, gang, inventory, node, occupy, place, role


def with_bad(good: Node, *indexes: int) -> Node:
    """The node with uncorrectable errors on these devices."""
    devices = tuple(
        structs.replace(device, healthy=False, health_reason="3 uncorrectable memory errors")
        if device.index in indexes
        else device
        for device in good.devices
    )
    return structs.replace(good, devices=devices)


def test_a_bad_device_is_hidden_and_its_gang_keeps_it() -> None:
    """Y9: hide GPU, keep job."""
    taken = cluster(node("n", 4))
    occupy(taken, "n", 0, 1, job="running")
    taken.apply(NodesSeen(inventory(with_bad(node("n", 4), 0, 2))))
    assert [hold.devices for hold in taken.holds(JobId("running")).values()] == [0b1, 0b10]
    found = place(taken, gang("new", role(1, 1)))
    assert found is not None and found.tasks[0].devices == (3,)
    assert place(taken, gang("two", role(1, 2))) is None
    assert taken.consistent()


def test_a_bad_device_is_not_given_again_when_its_gang_ends() -> None:
    taken = cluster(node("n", 2))
    occupy(taken, "n", 0, 1, job="running")
    taken.apply(NodesSeen(inventory(with_bad(node("n", 2), 0))))
    taken.apply(TasksReleased(JobId("running"), (TaskKey("other", 0), TaskKey("other", 1))))
    assert place(taken, gang("two", role(1, 2))) is None
    found = place(taken, gang("one", role(1, 1)))
    assert found is not None and found.tasks[0].devices == (1,)
    taken.apply(NodesSeen(inventory(node("n", 2))))
    assert place(taken, gang("two", role(1, 2))) is not None


def test_a_node_in_doubt_takes_nobody_and_keeps_what_runs() -> None:
    """A node whose devices differ from its configuration is not ready."""
    good = node("n", 4)
    doubted = structs.replace(
        good,
        devices=good.devices[:3],
        ready=False,
        ready_reason="the machine reports other devices than configured",
        mismatches=(Mismatch("devices", "4 × gpu", "3 × gpu"),),
    )
    taken = cluster(good, node("m", 1))
    occupy(taken, "n", 0, job="running")
    taken.apply(NodesSeen(inventory(doubted, node("m", 1))))
    assert place(taken, gang("two", role(1, 2))) is None
    found = place(taken, gang("one", role(1, 1)))
    assert found is not None and found.tasks[0].node == "local/m"
    assert len(taken.holds(JobId("running"))) == 1 and taken.consistent()
