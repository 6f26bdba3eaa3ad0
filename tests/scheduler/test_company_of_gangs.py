"""Affinity of gangs: exclusive nodes, one task a node, anti-affinity, spread tasks, and preferred taints."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from corral.kernel.ids import JobId, TaskKey
from corral.model.inventory import Taint
from corral.model.placement import Placement
from corral.model.requests import (
    DeviceRequest,
    FractionRequest,
    GangRequest,
    NodeRules,
    NodeSharing,
    RoleRequest,
    Toleration,
    TopologyRequest,
)
from corral.scheduler import Cluster, Policy, TasksReleased, gang_placed
from corral.scheduler.planners.builtin.planning import plan
from tests.scheduler.machines import cluster, gang, node, occupy, place, queue, role

ALONE = NodeSharing(exclusive=True)
ONE_EACH = NodeSharing(one_per_node=True)


def start(target: Cluster, request: GangRequest) -> Placement:
    """Place the gang for good."""
    placement = place(target, request)
    assert placement is not None
    target.apply(gang_placed(request, placement, 0.0))
    assert target.consistent()
    return placement


def names(placement: Placement | None) -> Counter[str]:
    """The number of tasks on each node."""
    assert placement is not None
    return Counter(task.node.removeprefix("local/") for task in placement.tasks)


def test_exclusive_nodes_are_shared_with_no_other_job_until_it_ends() -> None:
    target = cluster(node("n1", 4), node("n2", 4))
    first = start(target, gang("a", role(1), company=ALONE))
    assert names(place(target, gang("b", role(4)))) == {"n2": 4}
    assert place(target, gang("b", role(5))) is None
    assert place(target, gang("b", role(9, 0))) is not None
    start(target, gang("c", role(1)))
    assert place(target, gang("d", role(1), company=ALONE)) is None
    target.apply(TasksReleased(JobId("a"), (first.tasks[0].key,)))
    assert names(place(target, gang("d", role(1), company=ALONE))) == {"n1": 1}
    assert target.consistent()


def test_roles_of_an_exclusive_job_share_its_nodes() -> None:
    target = cluster(node("n1", 4))
    request = gang("a", role(2, name="w"), role(1, 0, name="ps"), role(1, name="v"), company=ALONE)
    assert names(start(target, request)) == {"n1": 4}
    assert place(target, gang("b", role(1, 0))) is None


def test_an_exclusive_job_grows_on_its_own_nodes() -> None:
    target = cluster(node("n1", 4), node("n2", 4))
    start(target, gang("a", role(2), company=ALONE))
    occupy(target, "n2", 0)
    late = gang("a", RoleRequest("worker", (2, 3), 2, devices=DeviceRequest(1)), company=ALONE, beside=("local/n1",))
    assert names(start(target, late)) == {"n1": 2}
    target.apply(TasksReleased(JobId("a"), tuple(TaskKey("worker", at) for at in range(4))))
    assert names(place(target, gang("b", role(4), required="node"))) == {"n1": 4}


def test_a_plan_of_many_keeps_to_it_too() -> None:
    target = cluster(*(node(f"n{at}", 4) for at in range(4)))
    waiting = queue(*(gang(f"a{at}", role(1), at=at, company=ALONE if at % 2 else None) for at in range(8)))
    found = plan(target, waiting, Policy(), 0.0)
    owners: dict[str, set[str]] = {}
    for placed in found.placements:
        for task in placed.placement.tasks:
            owners.setdefault(task.node, set()).add(placed.job)
    assert len(found.placements) >= 6
    assert all(len(jobs) == 1 or not any(int(job[1:]) % 2 for job in jobs) for jobs in owners.values())


def test_one_task_a_node_holds_over_roles_and_growth() -> None:
    target = cluster(*(node(f"n{at}", 4) for at in range(4)))
    request = gang("a", role(2, name="w"), role(1, 0, name="ps"), company=ONE_EACH)
    assert set(names(start(target, request)).values()) == {1}
    used = tuple(sorted({hold.node for hold in target.holds(JobId("a")).values()}))
    one = role(1, name="v")
    assert place(target, gang("a", role(2, name="v"), company=ONE_EACH, beside=used)) is None
    (name,) = names(place(target, gang("a", one, company=ONE_EACH, beside=used)))
    assert f"local/{name}" not in used


@pytest.mark.parametrize(("level", "left"), [("node", {"n2", "n3"}), ("rack", {"n3"})])
def test_jobs_keep_away_from_tags_and_are_kept_away(level: str, left: set[str]) -> None:
    target = cluster(node("n1", 4, rack="r1"), node("n2", 4, rack="r1"), node("n3", 4, rack="r2"))
    start(target, gang("noisy", role(1), tags=("noisy",), company=None))
    shy = NodeSharing(averse=("noisy",), averse_level=level)
    assert set(names(place(target, gang("a", role(4 * len(left)), company=shy)))) == left
    assert place(target, gang("a", role(4 * len(left) + 1), company=shy)) is None
    other = cluster(node("n1", 4, rack="r1"), node("n2", 4, rack="r1"), node("n3", 4, rack="r2"))
    start(other, gang("a", role(1), company=shy))
    assert set(names(place(other, gang("b", role(4 * len(left)), tags=("noisy",))))) == left
    assert place(other, gang("b", role(4 * len(left) + 1), tags=("noisy",))) is None
    assert names(place(other, gang("c", role(11), tags=("quiet",)))).total() == 11


def test_a_job_may_keep_its_own_kind_away_but_not_itself() -> None:
    target = cluster(node("n1", 4), node("n2", 4))
    apart = NodeSharing(averse=("me",))
    assert names(start(target, gang("a", role(4), tags=("me",), company=apart))) == {"n1": 4}
    assert names(start(target, gang("b", role(4), tags=("me",), company=apart))) == {"n2": 4}


def test_room_that_came_by_others_leaving_a_rack_is_seen() -> None:
    """The waiting gang finds room not where tasks ended, but elsewhere in the rack that they left."""
    target = cluster(node("n1", 1, rack="r1"), node("n2", 1, rack="r1"))
    tagged = gang("noisy", role(1), tags=("noisy",))
    placement = start(target, tagged)
    shy = gang(
        "a", role(1, 1, nodes=NodeRules(include=("n2",))), company=NodeSharing(averse=("noisy",), averse_level="rack")
    )
    waiting = queue(shy)
    assert not plan(target, waiting, Policy(), 0.0).placements
    target.apply(TasksReleased(JobId("noisy"), (placement.tasks[0].key,)))
    assert [placed.job for placed in plan(target, waiting, Policy(), 1.0).placements] == ["a"]


@pytest.mark.parametrize("skew", [0, 1, 2])
def test_tasks_are_spread_as_evenly_as_can_be(skew: int) -> None:
    target = cluster(*(node(f"n{at}", 8, rack=f"r{at // 2}") for at in range(6)))
    spread = TopologyRequest(spread_level="rack", max_skew=skew)
    placement = place(target, gang("a", role(7, topology=spread)))
    racks = Counter(int(name[1:]) // 2 for name in names(placement).elements())
    assert sorted(racks.values()) == [2, 2, 3]


def test_a_bound_on_the_skew_refuses_what_only_evening_would_not() -> None:
    target = cluster(node("n1", 8, rack="r1"), node("n2", 1, rack="r2"))
    assert names(place(target, gang("a", role(5, topology=TopologyRequest(spread_level="rack"))))) == {"n1": 4, "n2": 1}
    assert place(target, gang("a", role(5, topology=TopologyRequest(spread_level="rack", max_skew=2)))) is None
    assert place(target, gang("a", role(4, topology=TopologyRequest(spread_level="rack", max_skew=2)))) is not None


def test_spread_tasks_that_join_count_those_that_run() -> None:
    target = cluster(node("n1", 8, rack="r1"), node("n2", 8, rack="r2"))
    occupy(target, "n2", *range(8))
    spread = TopologyRequest(spread_level="rack")
    assert names(start(target, gang("a", role(2, topology=spread)))) == {"n1": 2}
    target.apply(TasksReleased(JobId("other-n2-0-1-2-3-4-5-6-7"), tuple(TaskKey("other", at) for at in range(8))))
    late = RoleRequest("worker", (2, 3, 4, 5), 4, devices=DeviceRequest(1), topology=spread)
    assert names(place(target, gang("a", late, beside=("local/n1",)))) == {"n1": 1, "n2": 3}


def test_nodes_that_would_rather_be_left_alone_are_taken_last() -> None:
    taint = (Taint("old", "", "PreferNoSchedule"),)
    target = cluster(node("n1", 2, taints=taint), node("n2", 4))
    assert names(place(target, gang("a", role(2)))) == {"n2": 2}
    assert names(place(target, gang("a", role(5)))).total() == 5
    rules = NodeRules(tolerations=(Toleration("old", "Exists"),))
    assert names(place(target, gang("a", role(2, nodes=rules)))) == {"n1": 2}
    waiting = queue(*(gang(f"j{at}", role(1), at=at) for at in range(6)))
    order = [next(iter(names(placed.placement))) for placed in plan(target, waiting, Policy(), 0.0).placements]
    assert order == ["n2"] * 4 + ["n1"] * 2


def test_a_big_gang_behind_parts_of_devices_is_not_starved_by_more_of_them() -> None:
    """The head waits for two whole devices; half devices that would outlast its start may not take them."""
    target = cluster(node("n1", 2))
    half = DeviceRequest(1, share=FractionRequest(500_000, 500_000))
    first = gang("a", role(2, ask=half), max_duration_seconds=10)
    placement = place(target, first)
    assert placement is not None
    target.apply(gang_placed(first, placement, 0.0))
    head, small = gang("head", role(1, 2), at=1.0), gang("small", role(1, ask=half), at=2.0)
    quick = gang("quick", role(1, ask=half), at=3.0, max_duration_seconds=5)
    waiting = queue(head, small, quick)
    before = target.digest()
    found = plan(target, waiting, Policy(), 1.0)
    assert target.digest() == before
    assert [placed.job for placed in found.placements] == ["quick"]
    assert found.reasons["small"].binding.code == "behind-head"


def test_what_is_placed_together_in_one_cycle_minds_its_neighbours() -> None:
    target = cluster(node("n1", 4), node("n2", 4))
    noisy = [gang(f"a{at}", role(1), at=at, tags=("noisy",)) for at in range(4)]
    shy = gang("shy", role(1), at=9.0, company=NodeSharing(averse=("noisy",)))
    late = gang("late", role(1), at=10.0, tags=("noisy",))
    before = target.digest()
    placements = plan(target, queue(*noisy, shy, late), Policy(), 0.0).placements
    found = {str(placed.job): set(names(placed.placement)) for placed in placements}
    assert target.digest() == before
    assert [found[f"a{at}"] for at in range(4)] == [{"n1"}] * 4
    assert found["shy"] == {"n2"}
    assert "late" not in found


def test_a_cluster_rebuilt_from_stored_events_holds_the_same() -> None:
    """Affinity, device fractions and all amounts are restored after a restart."""
    nodes = [node(f"n{at}", 4, resources={"ports": 9, "key": 3}) for at in range(4)]
    half = DeviceRequest(1, share=FractionRequest(500_000, 250_000))
    target, stored = cluster(*nodes), []
    for request in (
        gang("a", role(1), company=ALONE),
        gang("b", role(2, ask=half, resources={"ports": 2, "key": 1}), tags=("noisy",)),
        gang("c", role(1, 4), company=NodeSharing(averse=("noisy",), averse_level="node")),
    ):
        placement = place(target, request)
        assert placement is not None
        target.apply(gang_placed(request, placement, 0.0))
        stored.append((msgspec.json.encode(request), msgspec.json.encode(placement)))
    again = cluster(*nodes)
    for asked, placed in stored:
        found = msgspec.json.decode(placed, type=Placement)
        again.apply(gang_placed(msgspec.json.decode(asked, type=GangRequest), found, 0.0))
    assert again.digest() == target.digest()
    assert again.consistent()


def test_jobs_that_share_no_engine_with_others_are_kept_from_all_of_it() -> None:
    target = cluster(node("n1", 4), node("n2", 4))
    start(target, gang("shy", role(1), company=NodeSharing(averse=("noisy",), averse_level="engine")))
    assert place(target, gang("a", role(1), tags=("noisy",))) is None
    assert place(target, gang("b", role(1))) is not None


@pytest.mark.parametrize(("tasks", "devices", "spread"), [(3, (2, 4), [1, 2]), (4, (4, 4), [2, 2])])
def test_tasks_beside_another_role_are_spread_as_evenly_as_can_be(
    tasks: int, devices: tuple[int, int], spread: list[int]
) -> None:
    cpus = (8000, 6000) if tasks == 3 else (6000, 8000)
    target = cluster(*(node(f"n{at}", devices[at], rack=f"r{at}", cpu_millis=cpus[at]) for at in range(2)))
    apart = role(tasks, name="apart", cpu_millis=1000, topology=TopologyRequest(spread_level="rack"))
    beside = role(3, name="beside", cpu_millis=2000 if tasks == 3 else 3000)
    placement = place(target, gang("a", apart, beside))
    assert placement is not None
    nodes = Counter(task.node for task in placement.tasks if task.role == "apart")
    assert sorted(nodes.values()) == spread
