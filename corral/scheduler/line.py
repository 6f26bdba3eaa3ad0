"""Why: when queues share fairly, who is next depends on who holds what, and changes with every gang that starts."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from corral.scheduler.policy import OrderKey
from corral.scheduler.queue import Group
from corral.scheduler.queues import QueueNode, QueueTree

Item = tuple[OrderKey, int, int]
"""The key of a group's next gang, the group's number, and the place of that gang in the group."""


class Line:
    """The groups that are still to be looked at in a cycle, next first.

    With `fair`, the queue that is most wronged is next (`QueueTree.standing`), from the top of the tree down, and within
    it the gang that is first in order; else the order alone decides.
    """

    def __init__(self, groups: Iterable[Group], queues: QueueTree, now: float, *, fair: bool) -> None:
        self.groups = list(groups)
        self._queues = queues
        self._now = now
        self._heaps: dict[str, list[Item]] = {}
        self._below: dict[str, int] = {}
        """By queue, how many groups of it and of the queues below it are left."""
        self._standings: dict[str, tuple[int, float]] = {}
        names = {group.queue for group in self.groups}
        self.fair = fair and len(names) > 1
        for at in range(len(self.groups)):
            self.push(at, 0)

    def _queue(self, at: int) -> str:
        return self.groups[at].queue if self.fair else ""

    def push(self, at: int, first: int) -> None:
        """Have the gang at place `first` of a group looked at in its turn."""
        name = self._queue(at)
        heappush(self._heaps.setdefault(name, []), (self.groups[at].keys[first], at, first))
        self._count(name, 1)

    def pop(self) -> tuple[int, int, OrderKey | None] | None:
        """The next group, the place of its next gang, and the key of the first gang of another group after it."""
        name = self._next() if self.fair else ""
        heap = self._heaps.get(name)
        if not heap:
            return None
        _, at, first = heappop(heap)
        self._count(name, -1)
        return at, first, heap[0][0] if heap else None

    @property
    def crowded(self) -> bool:
        """Whether another queue may come first as soon as one gang was placed."""
        return self.fair and sum(bool(heap) for heap in self._heaps.values()) > 0

    def charged(self, queue: str) -> None:
        """What a queue holds has changed."""
        if self.fair:
            for node in self._queues.find(queue).chain():
                self._standings.pop(node.name, None)

    def _next(self) -> str:
        node = self._queues.root
        while True:
            if node.parent is not None and self._heaps.get(node.name):
                return node.name
            waiting = [child for child in node.children if self._below.get(child.name)]
            if not waiting:
                return node.name
            node = waiting[0] if len(waiting) == 1 else min(waiting, key=self._standing)

    def _standing(self, node: QueueNode) -> tuple[tuple[int, float], str]:
        found = self._standings.get(node.name)
        if found is None:
            found = self._standings[node.name] = self._queues.standing(node, self._now)
        return (found, node.name)

    def _count(self, name: str, more: int) -> None:
        if self.fair:
            for node in self._queues.find(name).chain():
                self._below[node.name] = self._below.get(node.name, 0) + more
