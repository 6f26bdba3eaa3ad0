"""When queues get less than their jobs hold: which jobs are preempted, and none without effect."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Rule
from corral.model.queues import CellQuota, QueueSpec
from corral.scheduler import NodesSeen, QueuesConfigured, TasksLeaving
from corral.scheduler.preemption.over_quota import bound_of, fragmenting, over_limit
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, inventory, node, role


def _life(*queues: QueueSpec, nodes: int = 2) -> Life:
    return Life([node(f"n{at}", 4, rack=f"r{at // 2}") for at in range(nodes)], queues)


def _running(life: Life, **gangs: tuple[str, int, int]) -> None:
    """Run these gangs: name to queue, devices and priority; a second apart."""
    for at, (name, (queue, devices, priority)) in enumerate(gangs.items()):
        life.submit(gang(name, role(devices), at=float(at), queue=queue, priority=priority))
        life.settle(float(at))
    assert set(life.running) == set(gangs)


def _chosen(life: Life, *queues: QueueSpec, now: float = 100.0) -> list[str]:
    life.planner.fold(QueuesConfigured(queues))
    found = over_limit(life.cluster, now)
    assert {each.rule for each in found} <= {Rule.CONFIGURATION}
    return sorted(each.job for each in found)


def test_the_lowest_priority_and_then_the_least_work_yields() -> None:
    life = _life(QueueSpec("lab"))
    _running(life, old=("lab", 2, 10), low=("lab", 2, 5), young=("lab", 2, 10))
    assert _chosen(life, QueueSpec("lab", limit={"devices": 4})) == ["low"]
    assert _chosen(life, QueueSpec("lab", limit={"devices": 2})) == ["low", "young"]
    assert _chosen(life, QueueSpec("lab", limit={"devices": 6})) == []


def test_nobody_yields_who_need_not_once_a_larger_one_does() -> None:
    life = _life(QueueSpec("lab"))
    _running(life, small=("lab", 1, 1), large=("lab", 4, 5))
    assert _chosen(life, QueueSpec("lab", limit={"devices": 1})) == ["large"]


def test_a_limit_of_a_parent_and_what_may_be_borrowed_bind_too() -> None:
    life = _life(QueueSpec("all"), QueueSpec("a", "all"), QueueSpec("b", "all"))
    _running(life, a1=("a", 2, 5), b1=("b", 2, 10))
    parent = QueueSpec("all", limit={"devices": 2})
    assert _chosen(life, parent, QueueSpec("a", "all"), QueueSpec("b", "all")) == ["a1"]
    owed = QueueSpec("b", "all", deserved={"devices": 1}, borrowing_limit={"devices": 0})
    assert _chosen(life, QueueSpec("all"), QueueSpec("a", "all"), owed) == ["b1"]


def test_those_that_are_ending_already_count_as_gone() -> None:
    life = _life(QueueSpec("lab"))
    _running(life, low=("lab", 2, 1), high=("lab", 4, 10))
    life.submit(gang("urgent", role(4), at=9.0, queue="lab", priority=100))
    assert [each.job for each in life.cycle(9.0).evictions] == ["low"]
    assert _chosen(life, QueueSpec("lab", limit={"devices": 4})) == []


def test_a_gang_that_is_not_preemptible_stays() -> None:
    life = _life(QueueSpec("lab"))
    life.submit(gang("stays", role(4), queue="lab", priority=0, preemptible=False))
    life.settle(0.0)
    assert set(life.running) == {"stays"} and _chosen(life, QueueSpec("lab", limit={"devices": 2})) == []


def _elastic(life: Life, name: str, tasks: int, minimum: int, *, at: float = 0.0, priority: int = 10) -> None:
    life.submit(gang(name, role(tasks, 1, minimum=minimum), at=at, queue="lab", priority=priority))
    life.settle(at)


def _fewer(life: Life, limit: int) -> dict[str, list[int]]:
    """The indexes of the tasks that each job must give up; none means the whole job."""
    life.planner.fold(QueuesConfigured((QueueSpec("lab", limit={"devices": limit}),)))
    return {each.job: [task.index for task in each.tasks] for each in over_limit(life.cluster, 100.0)}


def test_an_elastic_gang_gives_up_its_highest_tasks_down_to_its_minimum_before_anybody_ends() -> None:
    life = _life(QueueSpec("lab"))
    _elastic(life, "el", 6, 2)
    _elastic(life, "fix", 2, 2, at=1.0, priority=1)
    assert _fewer(life, 7) == {"el": [5]}
    assert _fewer(life, 4) == {"el": [2, 3, 4, 5]}
    assert _fewer(life, 2) == {"el": [2, 3, 4, 5], "fix": []}
    assert _fewer(life, 0) == {"el": [], "fix": []}


def test_of_two_elastic_gangs_the_lower_priority_gives_first_and_nobody_gives_whom_another_makes_needless() -> None:
    life = _life(QueueSpec("lab"))
    _elastic(life, "high", 4, 1, priority=10)
    _elastic(life, "low", 4, 3, at=1.0, priority=5)
    assert _fewer(life, 7) == {"low": [3]}
    assert _fewer(life, 5) == {"low": [3], "high": [2, 3]}
    assert _fewer(life, 3) == {"low": [], "high": [3]}


def test_tasks_that_leave_already_count_as_gone_and_are_not_told_twice() -> None:
    life = _life(QueueSpec("lab"))
    _elastic(life, "el", 6, 2)
    life.planner.fold(TasksLeaving(JobId("el"), (TaskKey("worker", 5),)))
    assert _fewer(life, 5) == {}
    assert _fewer(life, 4) == {"el": [4]}


def test_a_limit_of_a_parent_takes_more_tasks_than_that_of_the_queue_below() -> None:
    life = _life(QueueSpec("all"), QueueSpec("lab", "all"))
    _elastic(life, "el", 8, 1)
    lower = (QueueSpec("all", limit={"devices": 3}), QueueSpec("lab", "all", limit={"devices": 6}))
    life.planner.fold(QueuesConfigured(lower))
    (found,) = over_limit(life.cluster, 9.0)
    assert [task.index for task in found.tasks] == [3, 4, 5, 6, 7] and found.cost_device_seconds == 0


@settings(max_examples=examples(60))
@given(
    sizes=st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 3), st.integers(0, 3)), max_size=8),
    limits=st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8)),
)
def test_whoever_is_chosen_is_enough_and_none_of_them_too_many(
    sizes: list[tuple[str, int, int]], limits: tuple[int, int, int]
) -> None:
    life = _life(QueueSpec("all"), QueueSpec("a", "all"), QueueSpec("b", "all"), nodes=4)
    for at, (queue, devices, priority) in enumerate(sizes):
        life.submit(gang(f"g{at}", role(devices), at=float(at), queue=queue, priority=priority))
    life.settle(0.0)
    names = ("all", "a", "b")
    specs = [
        QueueSpec(name, "" if name == "all" else "all", limit={"devices": limit})
        for name, limit in zip(names, limits, strict=True)
    ]
    chosen = _chosen(life, *specs)

    def within(yielding: list[str]) -> bool:
        twin = life.cluster.fork()
        for name in names:
            node = twin.queues.nodes[name]
            held = node.used[0] - sum(
                gang.amounts[0]
                for gang in twin.gangs.by_job.values()
                if gang.job in yielding and name in (gang.queue, "all")
            )
            if held > bound_of(node)[0]:
                return False
        return True

    assert within(chosen)
    last = [each.job for each in over_limit(life.cluster, 100.0)][-1:]
    assert not last or not within([job for job in chosen if job not in last])


def _owner(name: str, level: str, count: int) -> QueueSpec:
    return QueueSpec(name, cells=(CellQuota(level, count),))


def test_a_gang_whose_cells_break_another_owners_yields_and_no_other_one() -> None:
    machines = [node(f"n{at}", 4, rack=f"r{at // 2}") for at in range(4)]
    half = [structs.replace(each, ready=at % 2 == 0) for at, each in enumerate(machines)]
    life = Life(half, [_owner("narrow", "node", 2)])
    for at, name in enumerate(("cheap", "dear")):
        life.submit(gang(name, role(4), at=float(at), queue="narrow", priority=at))
    life.settle(0.0)
    life.planner.fold(NodesSeen(inventory(*machines)))
    assert len({hold.node for name in life.running for hold in life.cluster.holds(JobId(name)).values()}) == 2
    life.planner.fold(QueuesConfigured((_owner("narrow", "node", 2), _owner("wide", "rack", 1))))
    assert [(each.owed, each.left) for each in life.cluster.ownership.shortfalls()] == [(1, 0)]
    assert [each.job for each in fragmenting(life.cluster, 100.0)] == ["cheap"]
    life.end("cheap")
    assert life.cluster.ownership.shortfalls() == []


def test_nobody_yields_for_cells_that_are_not_there_at_all() -> None:
    life = _life(_owner("narrow", "node", 1), nodes=2)
    life.submit(gang("n1", role(4), queue="narrow"))
    life.settle(0.0)
    life.planner.fold(QueuesConfigured((_owner("narrow", "node", 1), _owner("wide", "rack", 1))))
    assert life.cluster.ownership.shortfalls() and fragmenting(life.cluster, 100.0) == ()


@pytest.mark.parametrize("queues", [(), (QueueSpec("lab", limit={"devices": 8}),)])
def test_where_all_is_well_nobody_is_looked_at(queues: tuple[QueueSpec, ...]) -> None:
    life = _life(QueueSpec("lab"))
    _running(life, one=("lab", 4, 1))
    assert _chosen(life, *queues) == [] and fragmenting(life.cluster, 1.0) == ()
