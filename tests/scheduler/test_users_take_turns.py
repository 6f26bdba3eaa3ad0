"""Among equal gangs of one queue, the user with the least present and past usage in it is next."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.ids import JobId
from corral.model.queues import QueueSpec
from corral.model.requests import GangRequest
from corral.scheduler import Cluster, NodesSeen, UsageRecalled, find_policy
from corral.scheduler.planners.builtin.planning import plan
from corral.scheduler.queues.user_usage import HALF_LIFE
from corral.scheduler.views.waiting_list import waiting_line
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, inventory, node, role

DAY = 86_400.0


def array(user: str, size: int, *, at: float = 0.0, priority: int = 0, devices: int = 1) -> list[GangRequest]:
    """`size` jobs of one user, submitted one after the other."""
    return [
        gang(f"{user}{number:03}", role(1, devices), user=user, at=at + number / 1000, priority=priority)
        for number in range(size)
    ]


def started(life: Life) -> list[str]:
    """The jobs that the next cycle places, in order."""
    return [placed.job for placed in life.cycle().placements]


def test_an_array_does_not_hold_back_another_users_job() -> None:
    life = Life([node("n1", 4)])
    life.submit(*array("ada", 1000))
    life.cycle(1.0)
    life.submit(*array("bob", 2, at=1.0))
    assert started(life) == []
    life.now = 2.0
    life.end("ada000", "ada001", "ada002")
    assert started(life) == ["bob000", "bob001", "ada004"]


def test_users_who_begin_together_take_turns() -> None:
    life = Life([node("n1", 4)])
    life.submit(*array("ada", 100), *array("bob", 100, at=50.0))
    assert started(life) == ["ada000", "bob000", "ada001", "bob001"]


def test_alone_a_users_gangs_start_together_in_their_order() -> None:
    life = Life([node("n1", 4)])
    life.submit(*array("ada", 6))
    assert started(life) == ["ada000", "ada001", "ada002", "ada003"]


def test_higher_priority_comes_first_whatever_its_user_holds() -> None:
    life = Life([node("n1", 4)])
    life.submit(*array("ada", 3))
    life.cycle(1.0)
    life.submit(*array("bob", 3, at=1.0), gang("urgent", role(1), user="ada", at=5.0, priority=7))
    assert started(life) == ["urgent"]


def test_what_was_held_yesterday_counts_and_is_forgotten_in_time() -> None:
    for days, first in ((1, "bob000"), (60, "ada001")):
        life = Life([node("n1", 4)])
        life.submit(*array("ada", 1, devices=4))
        life.cycle(0.0)
        life.now = DAY
        life.end("ada000")
        now = (1 + days) * DAY
        life.submit(gang("ada001", role(1, 4), user="ada", at=now), gang("bob000", role(1, 4), user="bob", at=now + 1))
        life.now = now + 2
        assert started(life) == [first]
    assert HALF_LIFE == DAY


def test_the_half_life_of_the_queue_is_that_of_its_users() -> None:
    life = Life([node("n1", 4)], (QueueSpec("quick", half_life_seconds=10.0), QueueSpec("slow")))
    tree = life.cluster.queues
    for queue in ("quick", "slow"):
        life.submit(gang(f"of-{queue}", role(1, 2), user="ada", queue=queue))
    life.cycle(0.0)
    life.now = 1000.0
    life.end("of-quick", "of-slow")
    quick, slow = (tree.user_standing(queue, "ada", 1100.0) for queue in ("quick", "slow"))
    assert 0 < quick < 0.001 < slow


def test_queues_share_first_and_users_within_them() -> None:
    life = Life([node("n1", 4)], (QueueSpec("left"), QueueSpec("right")))
    for number in range(8):
        life.submit(gang(f"a{number}", role(1), user="ada", queue="left", at=float(number)))
    life.submit(gang("b0", role(1), user="bob", queue="left", at=20.0))
    life.submit(gang("c0", role(1), user="ada", queue="right", at=30.0))
    placed = set(started(life))
    assert placed == {"a0", "b0", "c0", "a1"}, "what ada holds in one queue is no matter in the other"


def test_without_it_the_time_of_submission_decides() -> None:
    life = Life([node("n1", 4)], policy=replace(find_policy(), fair_users=False))
    life.submit(*array("ada", 6), *array("bob", 1, at=1.0))
    assert started(life) == ["ada000", "ada001", "ada002", "ada003"]


def test_the_past_of_users_is_the_same_after_a_restart() -> None:
    life = Life([node("n1", 4)])
    life.submit(*array("ada", 2, devices=2))
    life.cycle(10.0)
    life.now = 5000.0
    life.end("ada000")
    written = tuple(life.cluster.queues.users.usages())
    assert [usage.user for usage in written] == ["ada"] and written[0].at == 5000.0
    again = Cluster()
    again.apply(NodesSeen(inventory(node("n1", 4))))
    again.apply(UsageRecalled((), written))
    assert tuple(again.queues.users.usages()) == written
    assert not again.queues.users.changed, "what was read is not written again"
    assert again.queues.user_standing("default", "ada", 6000.0) > 0


def test_the_line_that_people_see_is_the_order_in_which_gangs_start() -> None:
    life = Life([node("n1", 4)])
    life.submit(*array("ada", 5), *array("bob", 2, at=10.0), *array("eve", 1, at=20.0, priority=-1))
    shown = waiting_line(life.cluster.queues, life.queue, life.policy, 30.0, name_of=str)
    before = [entry.job for entry in shown.items]
    assert plan(life.cluster, life.queue, life.policy, 30.0).placements
    shown = waiting_line(life.cluster.queues, life.queue, life.policy, 30.0, name_of=str)
    assert [entry.job for entry in shown.items] == [
        "ada000", "bob000", "ada001", "bob001", "ada002", "ada003", "ada004", "eve000",
    ]  # fmt: skip
    assert before[-1] == "eve000"
    assert started(life) == ["ada000", "bob000", "ada001", "bob001"]


def test_a_queue_that_is_gone_does_not_come_back_with_the_past_of_its_users() -> None:
    life = Life([node("n1", 4)], (QueueSpec("left"), QueueSpec("right")))
    life.submit(gang("a", role(1), user="ada", queue="left"))
    life.cycle(10.0)
    life.now = 20.0
    life.end("a")
    life.configure(QueueSpec("right"))
    tree = life.cluster.queues
    assert [usage.queue for usage in tree.users.usages()] == ["left"], "it may be made again"
    tree.users.forget(30.0, tree.half_life)
    assert tree.user_standing("left", "ada", 30.0) >= 0 and "left" not in tree.nodes


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12))
def test_nobody_gets_a_device_more_while_somebody_who_waits_has_fewer(users: list[str]) -> None:
    life = Life([node("n1", 4)])
    for number, user in enumerate(users):
        life.submit(gang(f"{number:03}", role(1), user=user, at=float(number)))
    life.cycle(100.0)
    held = {user: sum(users[int(job)] == user for job in life.running) for user in users}
    for job in life.requests.keys() - life.running.keys():
        assert max(held.values()) - 1 <= held[users[int(job)]]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=30))
def test_a_position_is_that_in_a_line_in_which_users_take_turns(asked: list[tuple[str, int]]) -> None:
    life = Life([node("n1", 1)])
    life.submit(gang("holds", role(1), user="other"))
    life.cycle(0.0)
    for number, (user, priority) in enumerate(asked):
        life.submit(gang(f"{number:03}", role(1), user=user, priority=priority, at=1.0 + number))
    life.cycle(100.0)
    ranks = life.queue.ranks()
    assert sorted(ranks.values()) == list(range(len(asked)))
    for number in range(len(asked)):
        first = life.queue.first(JobId(f"{number:03}"))
        assert first is not None
        assert ranks[first.key] == life.queue.position(first.request.job)
    life.end(*(f"{number:03}" for number in range(len(asked))))
    assert not life.queue.ranks() and len(life.queue) == 0


def test_groups_of_users_share_what_was_found_about_their_shape() -> None:
    life = Life([node("n1", 1)])
    life.submit(gang("holds", role(1), user="eve"))
    life.cycle(1.0)
    life.submit(*array("ada", 3, at=2.0), *array("bob", 3, at=3.0))
    assert started(life) == []
    groups = list(life.queue.groups.values())
    assert {group.user for group in groups} == {"ada", "bob"}
    assert len({id(group.finding) for group in groups}) == 1
    twin = life.queue.fork()
    assert len({id(group.finding) for group in twin.groups.values()}) == 1
    assert twin.groups.keys() == life.queue.groups.keys()
