"""Gangs that differ only by user and duration are refused together, and are decided on as if each was looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from corral.kernel.draw import draw_integer
from corral.model.plan import Plan, Reason, Reasons
from corral.model.requests import GangRequest
from corral.scheduler import GangQueued, History, Policy, Queue, find_policy
from corral.scheduler.events import QueueEvent
from corral.scheduler.planners.builtin.refusals import Refusals, RefusedGang, Verdict
from corral.scheduler.policy.order import Order
from corral.scheduler.policy.service_orders import LeastAttainedService
from corral.scheduler.preemption.order_rules import ByOrder
from corral.scheduler.queues.queue_order import QueueOrder
from corral.scheduler.queues.queue_tree import QueueTree
from corral.scheduler.queues.waiting_queue import Finding
from tests.examples import at_least
from tests.scheduler import compared_lives
from tests.scheduler.compared_lives import LifeWithQueue, machines
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, role

SECONDS = at_least(30, 50)
MANY = 1 << 30


class ApartQueue(Queue):
    """A queue in which nothing found for the gangs of one user is known for those of another."""

    def apply(self, event: QueueEvent) -> None:
        super().apply(event)
        self._part()

    def arrange(
        self, order: Order, history: History, now: float, *, by_user: bool = True, by_duration: bool = False
    ) -> None:
        super().arrange(order, history, now, by_user=by_user, by_duration=True)
        self._part()

    def _part(self) -> None:
        for group in self.groups.values():
            if group.finding.groups < MANY:
                group.finding = Finding(group.verdict)
                group.finding.groups = MANY


def drawn(seed: int, second: int, at: int) -> GangRequest:
    """A gang of one to twelve devices of one of four users."""
    tasks, devices = [(1, 1), (1, 2), (2, 2), (3, 4)][draw_integer(seed, second, at, 1) % 4]
    return gang(
        f"job{second:03}-{at}",
        role(tasks, devices),
        at=float(second),
        priority=[0, 0, 10, -1][draw_integer(seed, second, at, 3) % 4],
        user=f"user{draw_integer(seed, second, at, 4) % 4}",
        max_duration_seconds=[0, 2, 5, 13][draw_integer(seed, second, at, 2) % 4],
    )


def second_of(life: Life, seed: int, second: int) -> Plan:
    """Submit and end what this second brings, and plan."""
    return compared_lives.second_of(life, seed, second, drawn, most=3, submits=second < SECONDS // 2)


@pytest.mark.parametrize("seed", range(at_least(1, 3)))
@pytest.mark.parametrize(
    "policy",
    [
        find_policy("fifo"),
        find_policy("fair"),
        replace(find_policy("fair"), preempt=ByOrder(2.0)),
        replace(find_policy("srtf"), preemption=True, preempt=ByOrder(2.0)),
        Policy("las", LeastAttainedService((20.0,)), preemption=True, preempt=ByOrder(2.0)),
    ],
    ids=["fifo", "fair", "fair by order", "srtf", "las"],
)
def test_plans_are_those_of_a_queue_that_looks_at_each_user(policy: Policy, seed: int) -> None:
    together, apart = Life(machines(), policy=policy), LifeWithQueue(policy, ApartQueue())
    for second in range(SECONDS):
        found, wanted = second_of(together, seed, second), second_of(apart, seed, second)
        assert (found.placements, found.evictions, found.lapsed) == (wanted.placements, wanted.evictions, wanted.lapsed)


def decisions(plan: Plan) -> tuple[object, ...]:
    """What a plan does, without when evicted gangs return, which is not told where nobody asks."""
    return plan.placements, [structs.replace(each, back_at=None) for each in plan.evictions], plan.lapsed


@pytest.mark.parametrize("seed", range(at_least(1, 3)))
@pytest.mark.parametrize("policy", ["fair", "fifo"])
def test_plans_are_the_same_where_nobody_asks_why_gangs_wait(policy: str, seed: int) -> None:
    silent = Queue()
    silent.unexplained = True
    told, untold = Life(machines(), policy=find_policy(policy)), LifeWithQueue(find_policy(policy), silent)
    left_out: list[Finding] = []
    close = QueueOrder.close

    def noted(order: QueueOrder, finding: Finding, longest: float) -> None:
        left_out.append(finding)
        close(order, finding, longest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QueueOrder, "close", noted)
        for second in range(SECONDS):
            assert decisions(second_of(untold, seed, second)) == decisions(second_of(told, seed, second))
    assert left_out, "no group was left out, so nothing was compared"


def test_a_refusal_holds_for_equal_gangs_until_something_changes() -> None:
    queue, refusals = Queue(), Refusals()
    for user in ("ann", "bob"):
        queue.apply(GangQueued(gang(f"job-{user}", user=user)))
    ann, bob = queue.groups.values()
    entry = next(iter(bob.entries.values()))
    reasons = Reasons(Reason("full", "All devices are in use."))
    refused = RefusedGang(changes=3, turn=entry.key[0], passable=False, alone=True, reasons=reasons)
    refusals.note(ann, refused)
    assert refusals.of(bob, entry, 3, set()) is None, "only what is cached for both holds for both"
    ann.verdict = Verdict(reasons, None, 0)
    refusals.note(ann, refused)
    assert refusals.of(bob, entry, 3, set()) is refused
    assert refusals.of(bob, entry, 4, set()) is None, "a gang was placed or evicted since"
    assert refusals.of(bob, entry, 3, {entry.request.job}) is None, "a place is kept for the job"
    assert Refusals().of(bob, entry, 3, set()) is None, "another cycle remembers nothing"


def test_closed_groups_are_left_out_until_they_are_opened_again_and_those_looked_at_are_not() -> None:
    queue = Queue()
    for at, user in enumerate(("ann", "bob", "eve", "kim")):
        queue.apply(GangQueued(gang(f"job-{user}", user=user, at=float(at))))
    groups = list(queue.groups.values())
    order = QueueOrder(groups, QueueTree(), 10.0, find_policy("fifo"))
    assert order.one_turn
    order.looked_at(1)
    order.close(groups[0].finding, 0.0)
    assert order.pop() == (1, 0, groups[2].keys[0]), "bob's group was looked at before, ann's was left out"
    order.reopen()
    assert order.pop() == (2, 0, groups[3].keys[0])
    order.close(groups[0].finding, 0.0)
    assert order.pop() is None


@pytest.mark.parametrize(("duration", "stays"), [(0, True), (5, True), (6, False)])
def test_groups_with_a_gang_that_is_short_enough_are_not_left_out(duration: int, stays: bool) -> None:
    queue = Queue()
    queue.apply(GangQueued(gang("ann", user="ann", max_duration_seconds=9)))
    queue.apply(GangQueued(gang("bob", user="bob", max_duration_seconds=9)))
    queue.apply(GangQueued(gang("short", user="bob", max_duration_seconds=duration)))
    groups = list(queue.groups.values())
    order = QueueOrder(groups, QueueTree(), 10.0, find_policy("fifo"))
    order.close(groups[0].finding, 5.0)
    assert [group for group, _, _ in iter(order.pop, None)] == ([1] if stays else [])
