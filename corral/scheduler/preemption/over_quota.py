"""Choose the gangs to evict after queues or cell quotas were reduced below current use.

Tasks that elastic gangs can spare go first, then gangs of the lowest priority, then those that lose the fewest
device-seconds. No gang is evicted needlessly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Eviction, Rule
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.events import TasksReleased
from corral.scheduler.queues.queue_tree import QueueNode, QueueTree


class Leaver(NamedTuple):
    """A task that an elastic gang can spare, or all remaining tasks of a gang."""

    gang: RunningGang
    tasks: tuple[TaskKey, ...]
    whole: bool

    @property
    def amounts(self) -> list[int]:
        """The holdings of its tasks, as a queue resource vector."""
        return [sum(column) for column in zip(*(self.gang.charges[task] for task in self.tasks), strict=True)]


def over_limit(cluster: Cluster, now: float) -> tuple[Eviction, ...]:
    """Return the evictions that bring every queue within its limits, counting leaving gangs as gone.

    Elastic gangs first give up the tasks that they can spare. Gangs that are not preemptible stay, even if a queue then
    stays above its limit. O(queues + gangs of the queues above their limits).
    """
    tree = cluster.queues
    used = {node.name: node.used[:] for node in tree.nodes.values()}
    gone: dict[JobId, set[TaskKey]] = {}
    for job in cluster.gangs.leaving:
        gang = cluster.gangs.by_job[job]
        gone[job] = set(gang.leaving)
        for task in gang.leaving:
            _discount(tree, used, gang.queue, gang.charges[task])
    told: dict[JobId, str] = {}
    for node in _children_first(tree.root):
        for leaver in _leavers(cluster, node, used, gone, now):
            gang = leaver.gang
            gone.setdefault(gang.job, set()).update(leaver.tasks)
            _discount(tree, used, gang.queue, leaver.amounts)
            told.setdefault(gang.job, node.name)
    return tuple(_over(cluster.gangs.by_job[job], gone[job], queue, now) for job, queue in told.items())


def _over(gang: RunningGang, gone: set[TaskKey], queue: str, now: float) -> Eviction:
    """Return the eviction of a gang that loses these tasks, less those already terminating."""
    message = f"the queue {queue} was given a lower limit, and its jobs hold more"
    fewer = tuple(sorted(gone - gang.leaving)) if len(gone) < len(gang.charges) else ()
    return _eviction(gang, queue, now, message, fewer)


def fragmenting(cluster: Cluster, now: float) -> tuple[Eviction, ...]:
    """Return the evictions of guaranteed gangs that let owners have all owed cells; none if that cannot succeed.

    It is tried on forks. Call it only where `cluster.ownership` has shortfalls.
    """
    if not cluster.ownership.shortfalls():
        return ()
    able = [gang for gang in cluster.gangs.by_job.values() if gang.guaranteed and gang.stays and gang.preemptible]
    able.sort(key=lambda gang: (gang.priority, gang.cost(now), gang.job))
    for _ in range(2):  # the second pass, in reverse order, drops gangs that need not go
        able = _until_whole(cluster.fork(), able)[::-1]
    message = "cells were given to other queues, and what it holds breaks theirs"
    return tuple(_eviction(gang, gang.queue, now, message) for gang in able)


def _until_whole(twin: Cluster, able: list[RunningGang]) -> list[RunningGang]:
    """Return the first gangs of `able` that must end to leave every owner its cells; empty if all are not enough."""
    for chosen, gang in enumerate(able, 1):
        twin.apply(TasksReleased(gang.job, tuple(gang.charges)))
        if not twin.ownership.shortfalls():
            return able[:chosen]
    return []


def bound_of(node: QueueNode) -> list[float]:
    """Return the most that a queue may hold of each resource, by its limit and its borrowing limit."""
    return [min(limit, borrowing) for limit, borrowing in zip(node.limit, node.borrowing, strict=True)]


def _leavers(
    cluster: Cluster, node: QueueNode, used: dict[str, list[int]], gone: dict[JobId, set[TaskKey]], now: float
) -> list[Leaver]:
    """Return the tasks and gangs that leave one queue and those below it: spare tasks first."""
    excess = [held - bound for held, bound in zip(used[node.name], bound_of(node), strict=True)]
    if max(excess, default=0) <= 0:
        return []
    able = [
        gang
        for queue in _below(node)
        for gangs in cluster.gangs.by_queue.get(queue.name, {}).values()
        for gang in gangs.values()
        if gang.preemptible and len(gone.get(gang.job, ())) < len(gang.charges)
    ]
    able.sort(key=lambda gang: (gang.priority, gang.cost(now), gang.job))
    chosen: list[Leaver] = []
    for leaver in _in_order(able, gone):
        if not any(over > 0 and amount for over, amount in zip(excess, leaver.amounts, strict=True)):
            continue
        for part in [other for other in chosen if other.gang is leaver.gang and leaver.whole]:
            chosen.remove(part)
            excess = _plus(excess, part.amounts)
        chosen.append(leaver)
        excess = _plus(excess, leaver.amounts, -1)
    for leaver in chosen[::-1]:  # a later choice may have made an earlier one needless
        without = _plus(excess, leaver.amounts)
        if max(without) <= 0:
            chosen.remove(leaver)
            excess = without
    return chosen


def _in_order(able: Sequence[RunningGang], gone: dict[JobId, set[TaskKey]]) -> Iterator[Leaver]:
    """Yield single spare tasks, lowest priority first and from the gangs with most to spare; then whole gangs."""
    spare = []
    for gang in able:
        tasks = [task for task in gang.spare() if task not in gone.get(gang.job, ())]
        spare += [(gang.priority, rank - len(tasks), Leaver(gang, (task,), False)) for rank, task in enumerate(tasks)]
    yield from (leaver for _, _, leaver in sorted(spare, key=lambda each: each[:2]))
    for gang in able:
        yield Leaver(gang, tuple(sorted(gang.charges.keys() - gone.get(gang.job, set()))), True)


def _plus(one: Sequence[float], other: Sequence[float], sign: int = 1) -> list[float]:
    return [a + sign * b for a, b in zip(one, other, strict=True)]


def _discount(tree: QueueTree, used: dict[str, list[int]], queue: str, amounts: Sequence[int]) -> None:
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


def _eviction(gang: RunningGang, queue: str, now: float, message: str, fewer: tuple[TaskKey, ...] = ()) -> Eviction:
    """Build the eviction of the tasks in `fewer`, or of the whole gang if that is empty."""
    cost = 0.0 if fewer else gang.cost(now)
    return Eviction(
        gang.job, gang.attempt, Rule.CONFIGURATION, message, fewer, by_queue=queue, cost_device_seconds=cost
    )
