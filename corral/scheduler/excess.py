"""Why: when queues are given less than they hold, and it was said that jobs shall yield, somebody must name those jobs.

Least damage first: the lowest priority, then the fewest device-seconds lost, and nobody who need not.
"""

from __future__ import annotations

from collections.abc import Iterator

from corral.model.plan import Eviction, Rule
from corral.scheduler.cluster import Cluster
from corral.scheduler.events import TasksReleased
from corral.scheduler.gangs import Running
from corral.scheduler.queues import QueueNode, QueueTree


def over_limit(cluster: Cluster, now: float) -> tuple[Eviction, ...]:
    """The gangs that must yield so that every queue is within its limits, those that are ending already counted as gone.

    Gangs that are not preemptible stay, even if a queue then stays above its limit. O(queues + gangs of those above).
    """
    tree = cluster.queues
    used = {node.name: node.used[:] for node in tree.nodes.values()}
    for job in cluster.gangs.leaving:
        gang = cluster.gangs.by_job[job]
        for task in gang.leaving:
            _discount(tree, used, gang.queue, gang.charges[task])
    chosen: list[Eviction] = []
    taken: set[str] = set()
    for node in _children_first(tree.root):
        for gang in _victims(cluster, node, used, taken, now):
            taken.add(gang.job)
            _discount(tree, used, gang.queue, _staying(gang))
            message = f"the queue {node.name} was given a lower limit, and its jobs hold more"
            chosen.append(_eviction(gang, node.name, now, message))
    return tuple(chosen)


def fragmenting(cluster: Cluster, now: float) -> tuple[Eviction, ...]:
    """The guaranteed gangs that must yield so that owners can have all cells they are owed; none if that helps nothing.

    Tried on forks; only worth it where `cluster.ownership` has shortfalls.
    """
    if not cluster.ownership.shortfalls():
        return ()
    able = [gang for gang in cluster.gangs.by_job.values() if gang.guaranteed and gang.stays and gang.preemptible]
    able.sort(key=lambda gang: (gang.priority, gang.cost(now), gang.job))
    for _ in range(2):  # the second time in reverse order: whoever was chosen early may be needless
        able = _until_whole(cluster.fork(), able)[::-1]
    message = "cells were given to other queues, and what it holds breaks theirs"
    return tuple(_eviction(gang, gang.queue, now, message) for gang in able)


def _until_whole(twin: Cluster, able: list[Running]) -> list[Running]:
    """The first of `able` whose end leaves every owner what it is owed; nobody when all of them are not enough."""
    for chosen, gang in enumerate(able, 1):
        twin.apply(TasksReleased(gang.job, tuple(gang.charges)))
        if not twin.ownership.shortfalls():
            return able[:chosen]
    return []


def bound_of(node: QueueNode) -> list[float]:
    """The most that a queue may hold of each resource, by its limit and by what it may borrow."""
    return [min(limit, borrowing) for limit, borrowing in zip(node.limit, node.borrowing, strict=True)]


def _victims(
    cluster: Cluster, node: QueueNode, used: dict[str, list[int]], taken: set[str], now: float
) -> list[Running]:
    """The gangs of one queue (and of those below it) that yield."""
    excess = [held - bound for held, bound in zip(used[node.name], bound_of(node), strict=True)]
    if max(excess, default=0) <= 0:
        return []
    able = [
        gang
        for queue in _below(node)
        for gangs in cluster.gangs.by_queue.get(queue.name, {}).values()
        for gang in gangs.values()
        if gang.stays and gang.preemptible and gang.job not in taken
    ]
    able.sort(key=lambda gang: (gang.priority, gang.cost(now), gang.job))
    chosen: list[Running] = []
    for gang in able:
        if _helps(gang, excess):
            chosen.append(gang)
            excess = [over - amount for over, amount in zip(excess, _staying(gang), strict=True)]
    for gang in reversed(chosen[:]):  # whoever was chosen early may have become needless
        without = [over + amount for over, amount in zip(excess, _staying(gang), strict=True)]
        if max(without) <= 0:
            chosen.remove(gang)
            excess = without
    return chosen


def _helps(gang: Running, excess: list[float]) -> bool:
    return any(over > 0 and amount for over, amount in zip(excess, _staying(gang), strict=True))


def _staying(gang: Running) -> tuple[int, ...]:
    """What those tasks of a gang hold that were not told to end."""
    amounts = gang.amounts[:]
    for task in gang.leaving:
        for at, amount in enumerate(gang.charges[task]):
            amounts[at] -= amount
    return tuple(amounts)


def _discount(tree: QueueTree, used: dict[str, list[int]], queue: str, amounts: tuple[int, ...]) -> None:
    for node in tree.find(queue).chain():
        held = used.setdefault(node.name, node.used[:])
        for at, amount in enumerate(amounts):
            held[at] -= amount


def _children_first(node: QueueNode) -> Iterator[QueueNode]:
    for child in sorted(node.children, key=lambda each: each.name):
        yield from _children_first(child)
        yield child


def _below(node: QueueNode) -> Iterator[QueueNode]:
    yield node
    for child in node.children:
        yield from _below(child)


def _eviction(gang: Running, queue: str, now: float, message: str) -> Eviction:
    cost = gang.cost(now)
    return Eviction(gang.job, gang.attempt, Rule.CONFIGURATION, message, by_queue=queue, cost_device_seconds=cost)
