"""Gangs are packed into the narrowest cell, joined where they run, and never spread over engines."""

from __future__ import annotations

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.placement import Placement, TaskPlacement
from corral.model.requests import GangRequest, TopologyRequest
from corral.scheduler import (
    Cluster,
    GangPlaced,
    GangQueued,
    GangWithdrawn,
    NodesSeen,
    Policy,
    could_ever_fit,
    gang_placed,
)
from corral.scheduler.planners.builtin.planning import plan
from corral.spec.placement.network import RDMA_LABEL
from tests.scheduler.machines import cluster, gang, inventory, node, occupy, place, queue, role, unknown


def nodes_of(placement: Placement | None) -> list[str]:
    assert placement is not None
    return [task.node.removeprefix("local/") for task in placement.tasks]


def two_by_two() -> Cluster:
    """Two racks of two nodes of 4 devices."""
    return cluster(
        node("n1", rack="r1"), node("n2", rack="r1"), node("n3", rack="r2"), node("n4", rack="r2")
    )  # fmt: skip


def run(target: Cluster, request: GangRequest) -> Placement:
    placement = place(target, request)
    assert placement is not None
    target.apply(gang_placed(request, placement, 0.0))
    return placement


def test_a_gang_that_fits_on_a_node_stays_on_one_and_the_tightest_wins() -> None:
    target = two_by_two()
    occupy(target, "n3", 0)
    assert set(nodes_of(place(target, gang("job", role(3))))) == {"n3"}
    assert set(nodes_of(place(target, gang("job", role(4))))) == {"n1"}


def test_a_gang_that_needs_two_nodes_stays_in_one_rack_and_the_tightest_wins() -> None:
    target = two_by_two()
    occupy(target, "n4", 0, 1)
    assert nodes_of(place(target, gang("job", role(6)))) == ["n3"] * 4 + ["n4"] * 2


def test_tasks_are_listed_and_numbered_along_the_topology() -> None:
    placement = place(two_by_two(), gang("job", role(14, 1)))
    assert placement is not None
    assert [task.index for task in placement.tasks] == list(range(14))
    assert [task.order for task in placement.tasks] == list(range(14))
    spots = [(task.node, task.devices) for task in placement.tasks]
    assert spots == sorted(spots)


def test_node_ten_comes_after_node_nine() -> None:
    target = cluster(*(node(f"n{at}", 1) for at in range(1, 13)))
    assert nodes_of(place(target, gang("job", role(12)))) == [f"n{at}" for at in range(1, 13)]


def test_a_task_without_devices_goes_where_no_device_is_free() -> None:
    target = cluster(node("n1"), node("n2", 0), node("n3"))
    assert nodes_of(place(target, gang("job", role(3, 0)))) == ["n2"] * 3


def test_roles_with_other_shapes_start_together_or_not_at_all() -> None:
    target = cluster(node("n1"), node("n2", 0, cpu_millis=2000))
    chief, workers = role(1, 0, name="ps", cpu_millis=2000), role(4, 1)
    found = plan(target, queue(gang("job", chief, workers)), Policy(), 0.0)
    assert len(found.placements[0].placement.tasks) == 5
    more = role(5, 1)
    assert not plan(target, queue(gang("job", chief, more)), Policy(), 0.0).placements


def test_what_joins_a_gang_shares_the_rack_that_the_job_requires() -> None:
    target = two_by_two()
    run(target, gang("job", role(6, 1), required="rack"))
    joins = gang(
        "job", msgspec.structs.replace(role(8, 1), indexes=(6, 7), minimum=2), required="rack", beside=("local/n1",)
    )
    assert set(nodes_of(place(target, joins))) <= {"n1", "n2"}
    occupy(target, "n2", 2, 3)
    assert place(target, joins) is None


def test_what_joins_a_gang_comes_as_near_as_it_can() -> None:
    target = two_by_two()
    target.apply(GangPlaced(unknown("job"), Placement((TaskPlacement("worker", 0, "local/n3", (0,)),))))
    joins = gang("job", msgspec.structs.replace(role(2, 1), indexes=(1,), minimum=1), beside=("local/n3",))
    assert nodes_of(place(target, joins)) == ["n3"]
    occupy(target, "n3", 1, 2, 3)
    assert nodes_of(place(target, joins)) == ["n4"]


def test_a_role_that_is_joined_keeps_to_its_own_cell() -> None:
    target = two_by_two()
    pair = [role(1, 1, name="chief"), role(2, 2, topology=TopologyRequest("node"))]
    placed = run(target, gang("job", *pair))
    (home,) = {task.node for task in placed.tasks if task.role == "worker"}
    more = msgspec.structs.replace(pair[1], indexes=(2,), minimum=1)
    assert place(target, gang("job", more, beside=(home,))) is None


def two_engines() -> Cluster:
    target = Cluster()
    for engine in ("east", "west"):
        made = node("n1")
        target.apply(NodesSeen(inventory(msgspec.structs.replace(made, name=f"{engine}/n1"), engine=engine)))
    return target


def test_a_gang_never_spans_engines() -> None:
    target = two_engines()
    assert place(target, gang("job", role(5))) is None
    reasons = could_ever_fit(target, gang("job", role(5)))
    assert reasons is not None and reasons.binding.counts["total"] == 4


def test_the_next_engine_is_used_when_the_first_is_full() -> None:
    found = plan(two_engines(), queue(*(gang(f"job{at}", role(4), at=float(at)) for at in range(2))), Policy(), 0.0)
    assert [placed.placement.tasks[0].node for placed in found.placements] == ["east/n1", "west/n1"]


def test_an_elastic_gang_goes_where_most_of_it_fits() -> None:
    target = two_engines()
    target.apply(GangPlaced(unknown("other"), Placement((TaskPlacement("other", 0, "east/n1", (0, 1)),))))
    placement = place(target, gang("job", role(6, 1, minimum=2)))
    assert placement is not None
    assert [task.node for task in placement.tasks] == ["west/n1"] * 4


def test_a_required_network_is_required_and_a_preferred_one_a_wish() -> None:
    target = cluster(node("n1"), node("n2", 2, labels=dict([RDMA_LABEL])))
    assert set(nodes_of(place(target, gang("job", role(2), network_rdma="required")))) == {"n2"}
    assert place(target, gang("job", role(3), network_rdma="required")) is None
    assert set(nodes_of(place(target, gang("job", role(2), network_rdma="preferred")))) == {"n2"}
    wished = place(target, gang("job", role(3), network_rdma="preferred"))
    assert set(nodes_of(wished)) == {"n1"}
    assert wished is not None and "RDMA" in wished.notes[0]


def test_a_gang_that_lost_a_task_waits_for_the_rest() -> None:
    waiting = queue(gang("job", role(3)))
    waiting.apply(GangWithdrawn(JobId("job"), (TaskKey("worker", 1),)))
    (request,) = waiting.waiting(JobId("job"))
    assert request.tasks == (TaskKey("worker", 0), TaskKey("worker", 2))
    assert request.roles[0].minimum == 2
    waiting.apply(GangWithdrawn(JobId("job"), request.tasks))
    assert not waiting.waiting(JobId("job")) and len(waiting) == 0


def test_a_gang_queued_again_waits_once() -> None:
    waiting = queue(gang("job", role(3)), gang("job", role(2)))
    assert [len(request.tasks) for request in waiting.waiting(JobId("job"))] == [2]
    waiting.apply(GangQueued(gang("job", role(1, name="other"))))
    assert len(waiting.waiting(JobId("job"))) == 2
