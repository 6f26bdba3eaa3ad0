"""Incremental indexes equal rebuilt ones after any events, planning leaves no trace, and equal events give equal plans."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from corral.kernel.errors import Conflict
from corral.kernel.ids import TaskKey
from corral.model.inventory import Device, Node
from corral.model.requests import GangRequest
from corral.scheduler import (
    BuiltinPlanner,
    Cluster,
    EngineUnknown,
    GangQueued,
    GangWithdrawn,
    NodesSeen,
    Policy,
    Queue,
    TasksReleased,
    execute_plan,
)
from corral.scheduler.planners.builtin.planning import plan
from tests.examples import examples
from tests.scheduler.machines import check, cluster, gang, inventory, node, occupy, place, queue, role


class Life(RuleBasedStateMachine):
    """Machines and gangs come and go at random; indexes must stay equal to rebuilt ones."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[str, Node] = {}
        self.cluster = Cluster()
        self.queue = Queue()
        self.requests: dict[str, GangRequest] = {}
        self.running: dict[str, set[TaskKey]] = {}
        self.now = 0.0
        self.count = 0

    def see(self) -> None:
        self.cluster.apply(NodesSeen(inventory(*self.nodes.values())))

    @rule(at=st.integers(0, 4), devices=st.sampled_from([0, 2, 4, 8]), rack=st.integers(0, 2))
    def add_a_node(self, at: int, devices: int, rack: int) -> None:
        if f"n{at}" not in self.nodes:
            self.nodes[f"n{at}"] = node(f"n{at}", devices, rack=f"r{rack}", cpu_millis=4000)
            self.see()

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def lose_a_node(self, data: st.DataObject) -> None:
        del self.nodes[data.draw(st.sampled_from(sorted(self.nodes)))]
        self.see()

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def change_health(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        old = self.nodes[name]
        sick = data.draw(st.integers(0, 8))
        devices = tuple(msgspec.structs.replace(device, healthy=device.index != sick) for device in old.devices)
        self.nodes[name] = msgspec.structs.replace(old, devices=devices, ready=data.draw(st.integers(0, 3)) > 0)
        self.see()

    @rule()
    def lose_the_engine(self) -> None:
        self.cluster.apply(EngineUnknown("local", "no answer"))

    @rule()
    def see_the_engine(self) -> None:
        self.see()

    @rule(
        count=st.integers(1, 4),
        devices=st.integers(0, 3),
        minimum=st.integers(1, 4),
        priority=st.integers(0, 2),
        required=st.sampled_from(["", "rack", "node", "pcie-switch"]),
        duration=st.sampled_from([0, 5, 50]),
    )
    def submit(self, count: int, devices: int, minimum: int, priority: int, required: str, duration: int) -> None:
        self.count += 1
        ask = role(count, devices, minimum=min(minimum, count), cpu_millis=500)
        name = f"job{self.count}"
        request = gang(name, ask, at=self.now, priority=priority, required=required, max_duration_seconds=duration)
        self.requests[name] = request
        self.queue.apply(GangQueued(request))

    @rule(seconds=st.sampled_from([0.0, 1.0, 20.0]))
    def cycle(self, seconds: float) -> None:
        self.now += seconds
        before = self.cluster.digest(), self.queue.digest()
        twin = plan(self.cluster.fork(), self.queue.fork(), Policy(), self.now)
        found = plan(self.cluster, self.queue, Policy(), self.now)
        assert (self.cluster.digest(), self.queue.digest()) == before
        assert twin.placements == found.placements
        for placed in found.placements:
            (request,) = self.queue.waiting(placed.job)
            check(self.cluster, request, placed.placement)
            self.running[placed.job] = {task.key for task in placed.placement.tasks}
        execute_plan(BuiltinPlanner(self.cluster, self.queue), found, self.now)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end_some_tasks(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.running)))
        gone = data.draw(st.sets(st.sampled_from(sorted(self.running[name])), min_size=1))
        self.cluster.apply(TasksReleased(self.requests[name].job, tuple(sorted(gone))))
        self.running[name] -= gone
        if not self.running[name]:
            del self.running[name]

    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        waiting = sorted(name for name in self.requests if self.queue.waiting(self.requests[name].job))
        if waiting:
            request = self.requests[data.draw(st.sampled_from(waiting))]
            self.queue.apply(GangWithdrawn(request.job, request.tasks[:1]))

    @invariant()
    def nothing_drifted(self) -> None:
        assert self.cluster.consistent()


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)


def requests_of(seed: int) -> list[GangRequest]:
    source = random.Random(seed)
    return [
        gang(
            f"job{at:03}", role(source.randint(1, 4), source.randint(0, 2)), at=float(at), priority=source.randint(0, 3)
        )
        for at in range(40)
    ]


@given(st.integers(0, 1000))
@settings(max_examples=examples(20), deadline=None)
def test_the_order_in_which_things_became_known_decides_nothing(seed: int) -> None:
    nodes = [node(f"n{at}", rack=f"r{at % 2}") for at in range(4)]
    plans = []
    for shuffled in (False, True):
        asked, machines = requests_of(seed), nodes[:]
        if shuffled:
            random.Random(seed).shuffle(asked)
            random.Random(seed).shuffle(machines)
        plans.append(plan(cluster(*machines), queue(*asked), Policy(), 0.0).placements)
    assert plans[0] == plans[1]


def test_a_cycle_with_nothing_changed_decides_nothing_and_tells_nothing() -> None:
    target, waiting = cluster(node("n1")), queue(gang("big", role(5)))
    first = plan(target, waiting, Policy(), 0.0)
    assert first.reasons and not first.placements
    second = plan(target, waiting, Policy(), 1.0)
    assert not second.reasons and not second.placements


def test_a_plan_that_was_not_taken_up_is_proposed_again() -> None:
    target, waiting = cluster(node("n1")), queue(gang("a", role(3)), gang("b", role(2), at=1.0))
    first = plan(target, waiting, Policy(), 0.0)
    assert [placed.job for placed in first.placements] == ["a"]
    waiting.apply(GangWithdrawn(first.placements[0].job, waiting.waiting(first.placements[0].job)[0].tasks))
    assert [placed.job for placed in plan(target, waiting, Policy(), 0.0).placements] == ["b"]


def test_a_fork_and_its_origin_do_not_see_each_other() -> None:
    target = cluster(node("n1"))
    twin = target.fork()
    occupy(twin, "n1", 0)
    assert not target.holders()
    assert twin.holders() == {"local/n1": {0: ("other-n1-0", TaskKey("other", 0))}}
    assert target.digest() != twin.digest()
    assert target.consistent() and twin.consistent()


def test_a_device_is_never_held_twice() -> None:
    target = cluster(node("n1"))
    occupy(target, "n1", 0, job="one")
    with pytest.raises(Conflict, match="rebuild"):
        occupy(target, "n1", 0, job="two")


def test_what_is_held_on_a_node_that_went_away_counts_when_it_comes_back() -> None:
    target = cluster(node("n1"), node("n2"))
    occupy(target, "n1", 0, 1, 2)
    target.apply(NodesSeen(inventory(node("n2"))))
    target.apply(NodesSeen(inventory(node("n1"), node("n2"))))
    assert target.consistent()
    placement = place(target, gang("job", role(4), required="node"))
    assert placement is not None
    assert {task.node for task in placement.tasks} == {"local/n2"}


def test_cells_of_an_engine_that_does_not_answer_are_neither_free_nor_lost() -> None:
    target = cluster(node("n1"))
    occupy(target, "n1", 0)
    target.apply(EngineUnknown("local", "no answer"))
    assert place(target, gang("job")) is None
    assert target.holders()["local/n1"]
    target.apply(NodesSeen(inventory(node("n1"))))
    placement = place(target, gang("job"))
    assert placement is not None
    assert placement.tasks[0].devices == (1,)


def test_a_device_given_back_sick_is_not_given_out() -> None:
    well = node("n1", 1)
    target = cluster(well)
    occupy(target, "n1", 0, job="one")
    sick = msgspec.structs.replace(well, devices=(Device(0, "n1:0", cells=well.devices[0].cells, healthy=False),))
    target.apply(NodesSeen(inventory(sick)))
    target.apply(TasksReleased(gang("one").job, (TaskKey("other", 0),)))
    assert place(target, gang("job")) is None
    target.apply(NodesSeen(inventory(well)))
    assert place(target, gang("job")) is not None
