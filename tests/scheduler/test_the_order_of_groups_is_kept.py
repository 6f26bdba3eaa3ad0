"""Groups come in the order of rank, their user's usage and their first gangs, whatever comes, goes and is charged."""

from __future__ import annotations

import random

import pytest

from corral.model.queues import QueueSpec
from corral.scheduler import GangQueued, GangWithdrawn, Queue, find_policy
from corral.scheduler.policy.order import rank
from corral.scheduler.queues.group_lists import GroupLists
from corral.scheduler.queues.queue_order import QueueOrder
from corral.scheduler.queues.queue_tree import QueueTree
from corral.scheduler.queues.waiting_queue import Group
from tests.examples import at_least
from tests.scheduler.machines import gang, role

NOW = 100.0
FAIR = find_policy("fair")


def submit(queue: Queue, draw: random.Random, number: int) -> None:
    """Queue a gang of one of some users, shapes and priorities."""
    queue.apply(
        GangQueued(
            gang(
                f"job{number:03}",
                role(1, draw.choice([1, 2, 4])),
                at=float(draw.randrange(10)),
                user=draw.choice(["ann", "bob", "eve", "kim"]),
                priority=draw.choice([0, 0, 10]),
                max_duration_seconds=draw.choice([0, 60]),
            )
        )
    )


def walked(queue: Queue, tree: QueueTree, draw: random.Random) -> None:
    """Take all gangs in order, some of which are charged to their user, and compare each with all that are left."""
    listed = queue.lists.usual
    groups: list[Group] = [*listed.groups]
    order, left = QueueOrder(listed, tree, NOW, FAIR), dict.fromkeys(range(len(groups)), 0)

    def place(at: int) -> tuple[object, ...]:
        key = groups[at].keys[left[at]]
        return rank(key), tree.user_standing("default", groups[at].user, NOW), key

    while (found := order.pop()) is not None:
        at, first, other = found
        assert at == min(left, key=place) and first == left[at]
        del left[at]
        key = groups[at].keys[first]
        assert order.crowded(at, first) == any(
            rank(groups[each].keys[left[each]]) == rank(key) and groups[each].user != groups[at].user for each in left
        )
        assert (other is None) == (not left)
        if draw.random() < 0.4:
            tree.charge("default", groups[at].user, (), [draw.choice([0, 1000, 2000]), 0, 0])
            order.charged("default", groups[at].user)
        if first + 1 < len(groups[at].keys):
            left[at] = first + 1
            order.push(at, first + 1)
    assert not left


@pytest.mark.parametrize("seed", range(at_least(5, 60)))
def test_the_next_group_is_the_least_of_those_that_are_left(seed: int) -> None:
    draw, queue, tree = random.Random(seed), Queue(), QueueTree([QueueSpec("default")])
    tree.total = [64_000, 0, 0]
    queue.arrange(FAIR.order, queue.history, NOW)
    for number in range(12):
        submit(queue, draw, number)
    for more in range(6):
        walked(queue, tree, draw)
        waiting = sorted({entry.request.job for group in queue.groups.values() for entry in group.entries.values()})
        for job in draw.sample(waiting, min(len(waiting), 4)):
            queue.apply(GangWithdrawn(job, tuple(task for each in queue.waiting(job) for task in each.tasks)))
        for number in range(draw.randrange(5)):
            submit(queue, draw, 100 + 10 * more + number)
        listed, fresh = queue.lists, GroupLists(queue.groups.values())
        assert listed.usual.turns() == fresh.usual.turns() and listed.firsts == fresh.firsts
        assert queue.starting == sum(len(group.entries) for group in queue.groups.values())
