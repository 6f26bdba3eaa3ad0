"""Gangs that differ only in their duration are one group of the queue, and are decided on as if each was looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.kernel.draw import draw_integer
from corral.kernel.ids import JobId
from corral.model.plan import Plan
from corral.model.requests import GangRequest
from corral.scheduler import GangQueued, GangWithdrawn, History, Policy, Queue, find_policy
from corral.scheduler.planners.builtin.group_walk import Walk
from corral.scheduler.policy.order import ArrivalOrder, Order
from corral.scheduler.policy.service_orders import LeastAttainedService
from corral.scheduler.preemption.order_rules import ByOrder
from tests.examples import at_least
from tests.scheduler import compared_lives
from tests.scheduler.compared_lives import LifeWithQueue, machines
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, role

SECONDS = at_least(30, 60)


class SplitQueue(Queue):
    """A queue with a group for each duration, in which every duration is looked at in every plan."""

    def arrange(
        self, order: Order, history: History, now: float, *, by_user: bool = True, by_duration: bool = False
    ) -> None:
        super().arrange(order, history, now, by_user=by_user, by_duration=True)


def drawn(seed: int, second: int, at: int) -> GangRequest:
    """A gang of one to twelve devices that declares one of six durations, or none."""
    tasks, devices = [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (3, 4)][draw_integer(seed, second, at, 1) % 6]
    lasts = [0, 2, 3, 5, 8, 13, 21][draw_integer(seed, second, at, 2) % 7]
    return gang(
        f"job{second:03}-{at}",
        role(tasks, devices),
        at=float(second),
        priority=[0, 0, 10, -1][draw_integer(seed, second, at, 3) % 4],
        user=f"user{draw_integer(seed, second, at, 4) % 2}",
        max_duration_seconds=lasts,
    )


def second_of(life: Life, seed: int, second: int) -> Plan:
    """Submit and end what this second brings, and plan."""
    return compared_lives.second_of(life, seed, second, drawn, most=2, submits=second < SECONDS // 2)


@pytest.mark.parametrize("seed", range(at_least(1, 3)))
@pytest.mark.parametrize(
    "policy",
    [
        find_policy("fifo"),
        find_policy("fair"),
        find_policy("priority"),
        replace(find_policy("srtf"), preemption=True, preempt=ByOrder(2.0)),
        Policy("las", LeastAttainedService((20.0,)), preemption=True, preempt=ByOrder(2.0)),
        Policy("in order", ArrivalOrder(), backfill=False),
    ],
    ids=lambda policy: policy.name,
)
def test_plans_are_those_of_a_queue_that_looks_at_each_duration(policy: Policy, seed: int) -> None:
    together, split = Life(machines(), policy=policy), LifeWithQueue(policy, SplitQueue())
    for second in range(SECONDS):
        found, wanted = second_of(together, seed, second), second_of(split, seed, second)
        assert (found.placements, found.evictions, found.lapsed) == (wanted.placements, wanted.evictions, wanted.lapsed)


def test_gangs_that_differ_only_in_their_duration_are_one_group() -> None:
    queue = Queue()
    for number in range(6):
        queue.apply(GangQueued(gang(f"job{number}", at=float(number), max_duration_seconds=10 * (number % 3))))
    (group,) = queue.groups.values()
    assert sorted(group.durations) == [0, 10, 20]
    for name in ("job1", "job4"):
        (request,) = queue.waiting(JobId(name))
        queue.apply(GangWithdrawn(request.job, tuple(request.tasks)))
    assert sorted(group.durations) == [0, 20] and len(group.keys) == 4
    assert [len(each.keys) for each in queue.fork_about(JobId("nobody"), 1).groups.values()] == [2], (
        "the first one of each duration"
    )


def walk(*durations: int) -> Walk:
    queue = Queue()
    for number, lasts in enumerate(durations):
        queue.apply(GangQueued(gang(f"job{number}", at=float(number), max_duration_seconds=lasts)))
    (group,) = queue.groups.values()
    return Walk(group)


def test_a_run_ends_where_another_duration_begins() -> None:
    found = walk(5, 5, 5, 7, 5, 7)
    assert [found.run_end(first, 6) for first in range(6)] == [3, 3, 3, 4, 5, 6]
    assert found.run_end(0, 2) == 2


def test_after_a_refusal_the_other_durations_are_left_in_order() -> None:
    found = walk(5, 7, 5, 9, 7, 9)
    assert found.after(0, 1) == 1
    assert found.without(1) == 2, "no gang of 7 s is left"
    assert found.after(2, 1) == 3
    assert found.after(3, 1) == 5
    assert found.after(5, 1) is None


def test_after_a_refusal_only_those_that_are_wanted_may_be_left() -> None:
    found = walk(5, 7, 5, 9, 7, 3)
    assert found.without(0, lambda seconds: seconds < 8) == 1
    assert found.without(1, lambda seconds: seconds < 8) == 5
    assert found.without(5) is None
