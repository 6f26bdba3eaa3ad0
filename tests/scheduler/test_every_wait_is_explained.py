"""Every waiting gang gets its binding reason, in a sentence with the numbers."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from corral.kernel.ids import TaskKey
from corral.model.queues import CellQuota, QueueSpec
from corral.model.requests import DeviceRequest, GangRequest, TopologyRequest
from corral.scheduler import (
    Cluster,
    EngineUnknown,
    GangQueued,
    NodesSeen,
    Policy,
    TasksLeaving,
    TasksReleased,
    could_ever_fit,
)
from corral.scheduler.explain.shortage import only_whether_possible
from corral.scheduler.placement.trial import Trial
from corral.scheduler.planners.builtin.planning import explain, plan
from tests.scheduler.life import Life
from tests.scheduler.machines import cluster, gang, inventory, node, occupy, queue, role


@dataclass(frozen=True)
class Case:
    sentence: str
    request: GangRequest
    code: str
    message: str
    possible: bool = True


def two_racks() -> Cluster:
    """Two racks of two nodes with 4 devices; rack2 has 5 of 8 free, rack1 has 3 of 8."""
    target = cluster(
        node("n1", rack="rack1", cpu_millis=8000),
        node("n2", rack="rack1", cpu_millis=8000),
        node("n3", rack="rack2", cpu_millis=8000, labels={"disk": "fast"}),
        node("n4", rack="rack2", cpu_millis=8000),
    )
    occupy(target, "n1", 0, 1, 2, 3)
    occupy(target, "n2", 0)
    occupy(target, "n3", 0, 1)
    occupy(target, "n4", 0)
    return target


CASES = (
    Case(
        "too few devices in every rack",
        gang("job", role(8), required="rack"),
        "no-cell-holds-gang",
        "Needs 8 devices inside one rack; the best rack (rack2) has 5 of 8 free.",
    ),
    Case("too few devices at all", gang("job", role(9)), "not-enough-devices", "Needs 9 devices; 8 of 16 are free."),
    Case(
        "enough devices, but scattered",
        gang("job", role(2, 3), required="rack"),
        "no-cell-holds-gang",
        "Needs 6 devices inside one rack; the best rack (rack2) has 5 of 8 free.",
    ),
    Case(
        "enough devices free, but on too many nodes",
        gang("job", role(1, 4)),
        "fragmented",
        "Needs 1 × 4 devices; 8 of 16 are free, but scattered: there is room for 0 of 1 task.",
    ),
    Case(
        "more than there is when all is empty",
        gang("job", role(17)),
        "not-enough-devices",
        "Needs 17 devices; there are 16.",
        possible=False,
    ),
    Case(
        "a task that no node could ever hold",
        gang("job", role(1, 5)),
        "not-enough-devices",
        "Needs 1 × 5 devices; the largest node has 4.",
        possible=False,
    ),
    Case(
        "a rack that could never hold it",
        gang("job", role(9), required="rack"),
        "no-cell-holds-gang",
        "Needs 9 devices inside one rack; the best rack (rack1) has 8 of 8 free.",
        possible=False,
    ),
    Case(
        "more processors than a node has",
        gang("job", role(1, 1, cpu_millis=9000)),
        "not-enough-cpu",
        "Needs processors for 1 task; there is enough for 0.",
        possible=False,
    ),
    Case(
        "a label that no node has",
        gang("job", role(node_selector={"disk": "slow"})),
        "node-selector",
        "No node has the labels disk=slow.",
        possible=False,
    ),
    Case(
        "a model that no node has",
        gang("job", role(ask=DeviceRequest(1, model="H900"))),
        "no-such-device",
        "No node has a H900 device.",
        possible=False,
    ),
    Case(
        "named devices that are taken",
        gang("job", role(ask=DeviceRequest(ids=("n1:0",)))),
        "named-devices",
        "Needs the devices n1:0; they are taken.",
    ),
    Case(
        "devices inside one PCIe switch",
        gang("job", role(1, 3), required="pcie-switch"),
        "no-cell-holds-gang",
        "Needs 3 devices inside one PCIe switch; the best PCIe switch (local/n1) has 2 of 2 free.",
        possible=False,
    ),
    Case(
        "one of two roles",
        gang("job", role(1, 1, name="chief"), role(9, 1), required=""),
        "not-enough-devices",
        "Role worker: Needs 9 devices; 8 of 16 are free.",
    ),
    Case(
        "two roles that fit only apart",
        gang("job", role(4, 1, name="chief"), role(5, 1)),
        "no-cell-holds-gang",
        "Each role fits by itself, but together they need more than is free.",
    ),
    Case(
        "blocks that find no cell",
        gang("job", role(8, 1, topology=TopologyRequest(group_size=4, group_required="node"))),
        "no-cell-holds-block",
        "Each block of 4 tasks must be inside one node, and too few nodes have room.",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence)
def test_what_binds_is_said_with_its_figures(case: Case) -> None:
    target, waiting = two_racks(), queue(case.request)
    found = plan(target, waiting, Policy(), 0.0)
    assert not found.placements
    reasons = found.reasons["job"]
    assert (reasons.binding.code, reasons.binding.message) == (case.code, case.message)
    assert reasons.possible == case.possible
    assert only_whether_possible(Trial(target), case.request).possible == case.possible
    assert (could_ever_fit(target, case.request) is None) == case.possible
    assert explain(target, waiting, Policy(), case.request.job, 0.0) == reasons


def test_sick_hardware_is_named_when_it_alone_binds() -> None:
    well = node("n1")
    sick = msgspec.structs.replace(
        well, devices=tuple(msgspec.structs.replace(device, healthy=device.index > 0) for device in well.devices)
    )
    target = cluster(sick)
    (reasons,) = plan(target, queue(gang("job", role(4))), Policy(), 0.0).reasons.values()
    assert reasons.binding.code == "bad-hardware"
    assert reasons.binding.counts["devicesUnhealthy"] == 1
    assert reasons.possible


def test_an_engine_that_does_not_answer_is_named() -> None:
    target = cluster(node("n1"))
    target.apply(EngineUnknown("local", "connection refused"))
    (reasons,) = plan(target, queue(gang("job")), Policy(), 0.0).reasons.values()
    assert reasons.binding.code == "engine-unknown"
    assert "local does not answer" in reasons.binding.message
    assert reasons.possible


def test_without_machines_nothing_is_possible_yet() -> None:
    (reasons,) = plan(Cluster(), queue(gang("job")), Policy(), 0.0).reasons.values()
    assert (reasons.binding.code, reasons.possible) == ("no-nodes", False)


def test_how_many_are_ahead_is_counted() -> None:
    waiting = queue(*(gang(f"job{at}", role(2), at=float(at)) for at in range(4)))
    target = cluster(node("n1", 1), node("n2", 1))
    occupy(target, "n1", 0)
    found = plan(target, waiting, Policy(), 0.0)
    assert [found.reasons[f"job{at}"].ahead for at in range(4)] == [0, 1, 2, 3]


def test_reasons_are_told_again_only_when_they_change() -> None:
    target, waiting = cluster(node("n1")), queue(gang("job", role(4)))
    occupy(target, "n1", 0)
    occupy(target, "n1", 1)
    occupy(target, "n1", 2)
    assert plan(target, waiting, Policy(), 0.0).reasons["job"].binding.counts["free"] == 1
    waiting.apply(GangQueued(gang("other", role(4), at=1.0)))
    assert list(plan(target, waiting, Policy(), 0.0).reasons) == ["other"]
    holder = gang("other-n1-0").job
    target.apply(TasksReleased(holder, (TaskKey("other", 0),)))
    assert plan(target, waiting, Policy(), 0.0).reasons["job"].binding.counts["free"] == 2


def test_a_job_that_would_start_says_so_and_one_that_does_not_wait_has_no_reasons() -> None:
    target, waiting = cluster(node("n1")), queue(gang("job"))
    found = explain(target, waiting, Policy(), gang("job").job, 0.0)
    assert found is not None and found.binding.code == "starts-now"
    assert explain(target, waiting, Policy(), gang("nobody").job, 0.0) is None


def test_new_machines_make_possible_what_was_not() -> None:
    target, waiting = cluster(node("n1")), queue(gang("job", role(5)))
    assert not plan(target, waiting, Policy(), 0.0).reasons["job"].possible
    target.apply(NodesSeen(inventory(node("n1"), node("n2"))))
    assert [placed.job for placed in plan(target, waiting, Policy(), 0.0).placements] == ["job"]


def lab_of_two() -> Life:
    """A virtual cluster that owns two of three nodes; a guest has the third."""
    life = Life(
        [node("n1"), node("n2"), node("n3")], [QueueSpec("lab", cells=(CellQuota("node", 2),)), QueueSpec("all")]
    )
    life.submit(gang("a", role(1, 3), queue="lab"), gang("b", role(1, 4), queue="lab", at=1.0))
    life.submit(gang("guest", role(1, 4), queue="all", at=2.0, preemptible=False))
    life.cycle()
    return life


def test_an_owner_whose_cells_its_own_queue_uses_is_told_so() -> None:
    life = lab_of_two()
    life.submit(gang("c", role(1, 4), queue="lab", at=3.0))
    told = life.cycle().reasons["c"]
    assert told.binding.code == "own-cells-in-use"
    assert told.binding.message == (
        "Queue lab owns 2 node cells; both are in use by its own jobs a and b. 1 device in them is free."
    )
    assert [other.code for other in told.others] == ["not-enough-devices"]
    assert told == life.planner.explain(gang("c").job, life.now)


def test_an_owner_is_told_which_of_its_jobs_are_ending() -> None:
    life = lab_of_two()
    life.planner.fold(TasksLeaving(gang("b").job, tuple(life.cluster.holds(gang("b").job))))
    life.submit(gang("c", role(2, 4), queue="lab", at=3.0))
    message = life.cycle().reasons["c"].binding.message
    assert message == (
        "Queue lab owns 2 node cells; both are in use by its own jobs a and b (b is ending). 1 device in them is free."
    )


def test_a_job_that_is_larger_than_what_its_owner_owns_is_told_what_is_free() -> None:
    life = lab_of_two()
    life.submit(gang("c", role(3, 4), queue="lab", at=3.0), gang("d", role(1, 4), queue="all", at=4.0))
    reasons = life.cycle().reasons
    assert reasons["c"].binding.code == "not-enough-devices"
    assert reasons["d"].binding.code == "not-enough-devices"
