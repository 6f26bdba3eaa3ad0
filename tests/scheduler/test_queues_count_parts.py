"""Half a device counts as half for a queue: in its bounds, its share, its debts and its pages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.ids import JobId
from corral.model.inventory import Device, Node
from corral.model.plan import Rule
from corral.model.queue_views import QueueStanding
from corral.model.queues import CellQuota, QueueSpec
from corral.model.requests import DeviceRequest, FractionRequest, GangRequest
from corral.scheduler import QueuesConfigured, TasksReleased
from corral.scheduler.preemption.over_quota import over_limit
from corral.scheduler.queues.fair_share import Fairness
from corral.scheduler.queues.gang_resources import asked
from corral.scheduler.queues.lending import lending
from corral.scheduler.views import CellTreeView, queue_standings, waiting_line
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import cluster, gang, node, place, role
from tests.scheduler.test_parts_of_devices import HALF, QUARTER, sharing, sliced, start

SPREAD = sharing(HALF, spread=True)


def half(job: str, at: float = 0.0, **fields: object) -> GangRequest:
    """A gang of one task on half a device."""
    return gang(job, role(ask=sharing(HALF)), at=at, **fields)  # type: ignore[arg-type]


def standings(life: Life) -> dict[str, QueueStanding]:
    return {each.name: each for each in queue_standings(life.cluster, life.queue, life.now)}


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_a_queue_limited_to_one_device_runs_two_halves_and_refuses_a_third() -> None:
    life = Life([node("n1", 4)], [QueueSpec("a", limit={"devices": 1})])
    life.submit(*(half(f"j{at}", float(at), queue="a") for at in range(3)))
    life.settle(5.0)
    assert sorted(life.running) == ["j0", "j1"]
    entry = life.queue.first(JobId("j2"))
    assert entry is not None and entry.reported is not None
    binding = entry.reported.binding
    assert (binding.code, binding.counts) == ("queue-limit", {"limit": 1, "used": 1, "needed": 0.5})
    assert binding.message == "Queue a may hold 1 device; 1 device is held, and this job needs 0.5 devices."
    assert entry.reported.possible
    life.end("j0")
    life.settle(6.0)
    assert sorted(life.running) == ["j1", "j2"]


def test_a_limit_may_be_a_part_of_a_device() -> None:
    life = Life([node("n1", 4)], [QueueSpec("a", limit={"devices": 1.5})])
    life.submit(half("h", queue="a"), gang("whole", role(), at=1.0, queue="a"), half("k", 2.0, queue="a"))
    life.settle(3.0)
    assert sorted(life.running) == ["h", "whole"]
    never = Life([node("n1", 4)], [QueueSpec("a", limit={"devices": 0.25})])
    never.submit(half("h", queue="a"))
    never.settle(0.0)
    entry = never.queue.first(JobId("h"))
    assert entry is not None and entry.reported is not None and not entry.reported.possible
    assert entry.reported.binding.message.startswith("The limit of queue a allows 0.25 devices,")


def test_the_limits_of_users_and_groups_and_of_borrowing_count_parts() -> None:
    life = Life([node("n1", 8)], [QueueSpec("a", user_limit={"devices": 1}, group_limit={"devices": 1.5})])
    life.submit(*(half(f"{who}{at}", queue="a", user=who, groups=("g",)) for who in ("ada", "bob") for at in range(3)))
    life.settle(0.0)
    assert sorted(life.running) == ["ada0", "ada1", "bob0"]
    assert (life.why("ada2"), life.why("bob1")) == ("user-limit", "group-limit")
    life = Life([node("n1", 8)], [QueueSpec("b", deserved={"devices": 1}, borrowing_limit={"devices": 0.5})])
    life.submit(*(half(f"j{at}", queue="b") for at in range(4)))
    life.settle(0.0)
    assert (sorted(life.running), life.why("j3")) == (["j0", "j1", "j2"], "borrowing-limit")


def test_what_a_queue_keeps_for_itself_is_kept_to_the_part() -> None:
    queues = [QueueSpec("a", guaranteed={"devices": 1.5}), QueueSpec("b")]
    life = Life([node("n1", 2)], queues)
    life.submit(half("b0", queue="b"), half("b1", 1.0, queue="b"))
    life.settle(2.0)
    assert (sorted(life.running), life.why("b1")) == (["b0"], "kept-for-others")
    life.submit(half("a0", 3.0, queue="a"), half("a1", 3.0, queue="a"), half("a2", 3.0, queue="a"))
    life.settle(4.0)
    assert sorted(life.running) == ["a0", "a1", "a2", "b0"]


def test_a_lowered_limit_ends_no_more_parts_than_it_must() -> None:
    life = Life([node("n1", 4)], [QueueSpec("a")])
    life.submit(*(half(f"j{at}", float(at), queue="a") for at in range(4)))
    life.settle(5.0)
    life.planner.fold(QueuesConfigured((QueueSpec("a", limit={"devices": 1.5}),)))
    assert [each.job for each in over_limit(life.cluster, 9.0)] == ["j0"]


# -- own and borrowed -------------------------------------------------------------------------------------------------


def test_a_queue_that_deserves_a_device_is_not_beyond_its_own_with_two_halves() -> None:
    queues = [QueueSpec("a", deserved={"devices": 1}), QueueSpec("b", deserved={"devices": 1})]
    life = Life([node("n1", 2)], queues)
    life.submit(half("a0", queue="a"), half("a1", queue="a"), half("b0", queue="b"), half("b1", queue="b"))
    life.settle(0.0)
    fairness = Fairness(life.cluster, frozenset({"a", "b"}))
    for name in ("a", "b"):
        assert fairness.beyond(life.cluster.queues.nodes[name])[0] == 0
    assert lending(life.cluster.queues) == {}
    life.submit(gang("c", role(), at=1.0, queue="a"))
    life.settle(2.0)
    assert not life.receipts


def test_reclaim_takes_back_as_many_parts_as_are_wanted() -> None:
    queues = [QueueSpec("a", deserved={"devices": 1}), QueueSpec("b", deserved={"devices": 1})]
    life = Life([node("n1", 2)], queues)
    life.submit(*(half(f"a{at}", float(at), queue="a") for at in range(4)))
    life.settle(4.0)
    assert standings(life)["a"].borrowed == {"devices": 1} and standings(life)["a"].borrowed_from == {"b": 1}
    life.submit(half("b0", 5.0, queue="b"))
    life.settle(6.0)
    assert life.rules() == [("a3", Rule.RECLAIM)]
    assert standings(life)["a"].borrowed == {"devices": 0.5} and standings(life)["b"].lent == {"devices": 0.5}
    life.submit(half("b1", 7.0, queue="b"), half("b2", 7.5, queue="b"))
    life.settle(8.0)
    assert life.rules() == [("a3", Rule.RECLAIM), ("a2", Rule.RECLAIM)]
    assert sorted(life.running) == ["a0", "a1", "b0", "b1"]


def test_the_fair_order_and_the_past_count_parts() -> None:
    queues = [QueueSpec("halves", half_life_seconds=100.0), QueueSpec("wholes", half_life_seconds=100.0)]
    life = Life([node("n1", 4)], queues)
    life.submit(half("h", queue="halves"), gang("w", role(), queue="wholes"))
    life.settle(0.0)
    tree = life.cluster.queues
    halves, wholes = tree.nodes["halves"], tree.nodes["wholes"]
    assert tree.standing(halves, 0.0) < tree.standing(wholes, 0.0)
    life.now = 100.0
    life.end("h", "w")
    assert (tree.average(halves, 100.0)[0], tree.average(wholes, 100.0)[0]) == pytest.approx((250.0, 500.0))


def test_what_a_gang_on_a_part_loses_is_a_part() -> None:
    life = Life([node("n1", 4)], [])
    life.submit(half("h"), gang("w", role(2), at=1.0), gang("cpu", role(1, 0), at=2.0))
    life.settle(10.0)
    costs = {job: life.cluster.gangs.by_job[JobId(job)].cost(30.0) for job in life.running}
    assert costs == {"h": 10.0, "w": 40.0, "cpu": 20.0}


def test_cells_owned_and_parts_used_are_one_account() -> None:
    life = Life([node("n1", 2), node("n2", 2)], [QueueSpec("lab", cells=(CellQuota("node", 1),)), QueueSpec("guests")])
    life.submit(*(half(f"l{at}", queue="lab") for at in range(3)), *(half(f"g{at}", queue="guests") for at in range(5)))
    life.settle(0.0)
    found = standings(life)
    assert found["lab"].used == {"devices": 1.5} and found["lab"].owned_devices == 2
    assert found["guests"].used == {"devices": 2.5} and found["lab"].borrowed == {}
    assert found["guests"].borrowed_from == {"": 2, "lab": 0.5} and found["lab"].lent == {"devices": 0.5}


# -- views ------------------------------------------------------------------------------------------------------------


def test_what_is_shown_of_queues_and_of_the_line_are_parts() -> None:
    life = Life([node("n1", 2)], [QueueSpec("a", limit={"devices": 1.5}), QueueSpec("b")])
    life.submit(
        gang("three", role(3, ask=sharing(HALF)), queue="a"), gang("two", role(2, ask=sharing(QUARTER)), queue="b")
    )
    life.submit(gang("more", role(5, ask=sharing(HALF)), at=1.0, queue="b"))
    life.settle(2.0)
    found = standings(life)
    assert (found["a"].used, found["a"].limit, found["b"].used) == (
        {"devices": 1.5},
        {"devices": 1.5},
        {"devices": 0.5},
    )
    assert found["b"].wanted == {"devices": 2.5}
    (entry,) = waiting_line(life.cluster.queues, life.queue, life.policy, 2.0, name_of=str).items
    assert (entry.devices, entry.tasks) == (2.5, 5)


def test_the_cells_say_of_each_queue_what_part_it_uses() -> None:
    life = Life([node("n1", 2)], [QueueSpec("a"), QueueSpec("b")])
    life.submit(half("a0", queue="a"), gang("b0", role(ask=sharing(QUARTER)), queue="b"), gang("b1", role(), queue="b"))
    life.settle(0.0)
    cell = CellTreeView(life.cluster, str).show(0.0, under="", depth=9, limit=100).cell
    assert (cell.devices, cell.used, cell.free) == (2, 2, 0)
    assert cell.queues == {"a": 0.5, "b": 1.25}
    uses = [use for switch in cell.cells for use in _uses(switch)]
    assert sum(use.share for use in uses) == 175


def _uses(cell: object) -> list[object]:
    found = [use for device in cell.holds for use in device.uses]  # type: ignore[attr-defined]
    return found + [use for inner in cell.cells for use in _uses(inner)]  # type: ignore[attr-defined]


# -- exactness --------------------------------------------------------------------------------------------------------


def test_thirds_by_memory_never_count_for_more_than_the_device() -> None:
    devices = (Device(0, "d0", model="big", memory_bytes=90), Device(1, "d1", model="small", memory_bytes=45))
    target = cluster(Node("local/n", devices=devices))
    third = gang("j", role(ask=DeviceRequest(1, model="big", share=FractionRequest(memory_bytes=30))))
    assert asked(third, target.queues)[0] == 333
    unsaid = gang("k", role(ask=sharing(FractionRequest(memory_bytes=30))))
    assert asked(unsaid, target.queues)[0] == 666, "it may get the smaller one"
    start(target, unsaid)
    assert target.queues.root.used[0] in (333, 666)


def test_slices_count_in_devices_as_parts_of_what_they_are_cut_from() -> None:
    target = sliced("n1").cluster()
    target.apply(QueuesConfigured((QueueSpec("a", limit={"devices": 1}), QueueSpec("b", limit={"devices/slice": 1}))))
    assert target.queues.total[0] == 2000, "two devices; what they can be cut into is not there besides"
    ask = DeviceRequest(1, model="slice")
    requests = [gang(f"a{at}", role(ask=ask), queue="a") for at in range(3)]
    for request in requests[:2]:
        assert target.queues.refusal("a", "ada", (), asked(request, target.queues)) is None
        start(target, request)
    assert target.queues.nodes["a"].used == [1000, 0, 0, 2000]
    refused = target.queues.refusal("a", "ada", (), asked(requests[2], target.queues))
    assert refused is not None and refused[0] == "queue-limit"


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_charges_and_refunds_balance_to_nothing(data: st.DataObject) -> None:
    """Gangs with fractions, slices and whole devices come, shrink and go; a queue's usage equals that of its gangs."""
    target = sliced("n1", "n2").cluster()
    top, one = QueueSpec("top", user_limit={"devices": 50}), QueueSpec("a", "top", deserved={"devices/slice": 1})
    target.apply(QueuesConfigured((top, one, QueueSpec("b", "top"))))
    asks = [
        (sharing(HALF), 500), (sharing(QUARTER), 250), (sharing(FractionRequest(10_000, 330_000)), 330),
        (DeviceRequest(), 0), (DeviceRequest(1), 1000), (DeviceRequest(2), 2000),
        (DeviceRequest(1, model="slice"), 500), (DeviceRequest(1, model="slice", share=HALF), 250),
    ]  # fmt: skip
    each_has: dict[tuple[str, object], tuple[str, int]] = {}
    for number in range(data.draw(st.integers(1, 16))):
        if each_has and data.draw(st.integers(0, 2)) == 0:
            job, task = key = data.draw(st.sampled_from(sorted(each_has)))  # type: ignore[type-var]
            del each_has[key]
            target.apply(TasksReleased(JobId(job), (task,)))  # type: ignore[arg-type]
        (ask, amount), name = data.draw(st.sampled_from(asks)), data.draw(st.sampled_from(["a", "b"]))
        request = gang(f"j{number:02}", role(data.draw(st.integers(1, 3)), ask=ask), queue=name)
        assert asked(request, target.queues)[0] == amount * len(request.tasks)
        if place(target, request) is not None:
            start(target, request)
            each_has |= {(request.job, task): (name, amount) for task in request.tasks}
        held = {each: sum(amount for owner, amount in each_has.values() if owner == each) for each in ("a", "b")}
        tree = target.queues
        assert {each: tree.find(each).used[0] for each in ("a", "b")} == held
        assert tree.find("top").used[0] == tree.root.used[0] == sum(held.values()) <= tree.total[0]
        assert target.consistent()
    for job, task in list(each_has):
        target.apply(TasksReleased(JobId(job), (task,)))  # type: ignore[arg-type]
    assert not target.queues.people and target.queues.columns()[1:] == ([0, 0, 0, 0], [], [], [])
