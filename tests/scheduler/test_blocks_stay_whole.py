"""A restarted task of a block returns to its block's cell, waits for room there, and goes nowhere else."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.placement import Placement, TaskPlacement
from corral.model.requests import GangRequest, RoleRequest, TopologyRequest
from corral.scheduler import Cluster, Policy, TasksReleased, gang_placed
from corral.scheduler.cluster.device_layout import indexes
from corral.scheduler.planners.builtin.planning import plan
from tests.examples import examples
from tests.scheduler.machines import cells_used, cluster, gang, node, occupy, place, queue, role

BY_NODE = TopologyRequest(group_size=2, group_required="node")
BY_SWITCH = TopologyRequest(group_size=2, group_required="pcie-switch")
BY_RACK = TopologyRequest(group_size=4, group_required="rack")


def start(target: Cluster, request: GangRequest) -> dict[int, str]:
    """Place a gang for good; returns each task's node by index."""
    placement = place(target, request)
    assert placement is not None
    target.apply(gang_placed(request, placement, 0.0))
    return nodes(placement)


def nodes(placement: Placement) -> dict[int, str]:
    return {task.index: task.node.removeprefix("local/") for task in placement.tasks}


def again(
    target: Cluster, whole: RoleRequest, *indexes: int, ended: bool = True, minimum: int | None = None
) -> GangRequest:
    """Request the same tasks once more, beside the rest of the gang; running ones end first."""
    if ended:
        target.apply(TasksReleased(JobId("job"), tuple(TaskKey("worker", index) for index in indexes)))
    beside = tuple(dict.fromkeys(hold.node for hold in target.holds(JobId("job")).values()))
    least = len(indexes) if minimum is None else minimum
    return gang("job", structs.replace(whole, indexes=indexes, minimum=least), beside=beside)


def waits(target: Cluster, request: GangRequest) -> tuple[str, str]:
    """The reason of its wait: code and sentence."""
    binding = plan(target, queue(request), Policy(), 1.0).reasons[request.job].binding
    return binding.code, binding.message


def test_a_retried_task_goes_back_to_the_node_of_its_block_though_another_of_the_gang_is_tighter() -> None:
    whole = role(4, 2, topology=BY_NODE)
    target = cluster(node("n1"), node("n2"), node("n3"))
    placed = start(target, gang("job", whole))
    assert placed == {0: "n1", 1: "n1", 2: "n2", 3: "n2"}
    for index in range(4):
        joins = again(target, whole, index)
        assert start(target, joins) == {index: placed[index]}


def test_without_room_in_its_block_a_retried_task_waits_and_is_told_so() -> None:
    target = cluster(node("n1"), node("n2"), node("n3"))
    whole = role(4, 2, topology=BY_NODE)
    start(target, gang("job", whole))
    joins = again(target, whole, 3)
    occupy(target, "n2", 2)
    assert place(target, joins) is None
    code, message = waits(target, joins)
    assert code == "no-room-in-block"
    assert message == (
        "worker 3 must be in the node local/n2 with the rest of the block (2 to 3); there is room for 0 of 1 task."
    )
    target.apply(TasksReleased(JobId("other-n2-2"), (TaskKey("other", 2),)))
    assert start(target, joins) == {3: "n2"}


def test_others_yield_in_the_cell_of_its_block() -> None:
    target = cluster(node("n1"), node("n2"), node("n3"))
    whole = role(4, 2, topology=BY_NODE)
    start(target, gang("job", whole))
    joins = again(target, whole, 3)
    small = gang("small", role(1, 2), priority=0)
    taken = TaskPlacement("worker", 0, "local/n2", (2, 3))
    target.apply(gang_placed(small, Placement((taken,)), 0.0))
    found = plan(target, queue(joins), Policy(preemption=True), 1.0)
    assert [eviction.job for eviction in found.evictions] == [JobId("small")]


def test_a_block_of_which_nothing_is_left_may_go_anywhere() -> None:
    target = cluster(node("n1"), node("n2"), node("n3"))
    whole = role(4, 2, topology=BY_NODE)
    start(target, gang("job", whole))
    joins = again(target, whole, 2, 3)
    occupy(target, "n2", 0)
    assert start(target, joins) == {2: "n3", 3: "n3"}


def test_a_block_inside_a_node_comes_back_to_its_switch() -> None:
    target = cluster(node("n1", 6), node("n2", 6))
    whole = role(6, 1, topology=BY_SWITCH)
    start(target, gang("job", whole))
    held = {key.index: hold.devices for key, hold in target.holds(JobId("job")).items()}
    assert start(target, again(target, whole, 3, 0)) == {0: "n1", 3: "n1"}
    assert {key.index: hold.devices for key, hold in target.holds(JobId("job")).items()} == held
    joins = again(target, whole, 5)
    occupy(target, "n1", 5)
    assert waits(target, joins) == (
        "no-room-in-block",
        "worker 5 must be in one PCIe switch of local/n1 with the rest of the block (4 to 5); "
        "there is room for 0 of 1 task.",
    )


def test_an_elastic_job_grows_its_last_block_before_it_begins_another() -> None:
    target = cluster(node("n1"), node("n2"), node("n3"))
    whole = role(8, 1, topology=TopologyRequest(group_size=4, group_required="node"))
    occupy(target, "n2", 0, 1)
    occupy(target, "n3", 0, 1)
    placed = start(target, gang("job", structs.replace(whole, indexes=tuple(range(6)))))
    assert placed == dict.fromkeys(range(4), "n1") | dict.fromkeys((4, 5), placed[4])
    growth = again(target, whole, 6, 7, ended=False, minimum=0)
    assert place(target, growth) is None
    other = "n2" if placed[4] == "n2" else "n3"
    target.apply(TasksReleased(JobId(f"other-{other}-0-1"), (TaskKey("other", 0),)))
    assert start(target, growth) == {6: other}


def test_a_gang_of_which_some_tasks_are_over_is_divided_as_it_was() -> None:
    target = cluster(node("n1", 2), node("n2", 2), node("n3", 2))
    left = structs.replace(role(5, 1, topology=BY_NODE), indexes=(1, 2, 3, 5), minimum=4)
    placed = start(target, gang("job", left))
    assert placed[2] == placed[3]


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_blocks_are_whole_whatever_ends_and_starts_again(data: st.DataObject) -> None:
    target = cluster(*(node(f"n{at}", 6, rack=f"r{at % 3}") for at in range(6)))
    ask = data.draw(st.sampled_from([BY_NODE, BY_SWITCH, BY_RACK]))
    whole = role(data.draw(st.integers(2, 10)), data.draw(st.integers(1, 2)), topology=ask)
    if ask is BY_SWITCH:
        whole = structs.replace(whole, devices=role(1, 1).devices)
    start(target, gang("job", whole))
    waiting: set[int] = set()
    others = 0
    for _ in range(6):
        running = sorted(key.index for key in target.holds(JobId("job")))
        ended = data.draw(st.sets(st.sampled_from(running), max_size=len(running) - 1)) if running else set()
        waiting |= ended
        target.apply(TasksReleased(JobId("job"), tuple(TaskKey("worker", index) for index in sorted(ended))))
        for at in sorted(data.draw(st.sets(st.integers(0, 5), max_size=2))):
            index = target.engines["local"]
            name, free = index.tree.nodes[at].name, index.free[at]
            if free:
                others += 1
                occupy(target, name.removeprefix("local/"), (free & -free).bit_length() - 1, job=f"other{others}")
        if not waiting:
            continue
        joins = again(target, whole, *sorted(waiting), ended=False)
        placement = place(target, joins)
        if placement is not None:
            target.apply(gang_placed(joins, placement, 1.0))
            waiting.clear()
        holds = target.holds(JobId("job")).items()
        tasks = [TaskPlacement(key.role, key.index, hold.node, tuple(indexes(hold.devices))) for key, hold in holds]
        for block in {task.index // ask.group_size for task in tasks}:
            some = [task for task in tasks if task.index // ask.group_size == block]
            assert len(cells_used(target, some, ask.group_required)) == 1
