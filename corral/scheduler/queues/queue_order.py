"""The order in which a cycle handles waiting gangs, updated with every gang that starts.

Queues and their users share fairly under a fair policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from corral.scheduler.policy.order import QueueKey, rank
from corral.scheduler.policy.policy import Policy
from corral.scheduler.queues.group_lists import GroupList
from corral.scheduler.queues.queue_tree import QueueNode, QueueTree
from corral.scheduler.queues.waiting_queue import Finding, Group

Item = tuple[QueueKey, float, QueueKey, int, int]
"""Rank of a group's next gang, its user's usage, the gang's key, the group's number, the gang's index in the group."""


class QueueOrder:
    """The groups still to be handled in a cycle, next one first.

    Under a fair policy, the queue with the lowest standing is next (`QueueTree.standing`), from the top of the tree
    down. Within it, the first gang in order is next, and users of equal gangs take turns (`QueueTree.user_standing`).
    Under other policies the order alone decides.
    """

    def __init__(self, groups: GroupList | Iterable[Group], queues: QueueTree, now: float, policy: Policy) -> None:
        listed = groups if isinstance(groups, GroupList) else GroupList(groups)
        self.groups = listed.groups
        self._queues = queues
        self._now = now
        self._heaps: dict[str, list[Item]] = {}
        self._behind: dict[int, tuple[tuple[int, ...], int]] = {}
        """By group in a heap, the run of its user's groups, and where in it those begin that are not in a heap yet."""
        self._below: dict[str, int] = {}
        """For each queue, the number of groups left in it and the queues below it."""
        self._standings: dict[str, tuple[int, float]] = {}
        self._uses: dict[tuple[str, str], float] = {}
        """The usage of each user, by queue and user."""
        self._closed: dict[Finding, float] = {}
        """What all gangs but those of `_looked_at` are refused for until something changes, if they take longer than this
        many seconds."""
        self._kinds = listed.kinds
        self._closed_anew = False
        """Whether something was closed since it was looked whether any group is left."""
        self._looked_at: set[int] = set()
        """The numbers of the groups of which a gang was refused."""
        self._charged: set[tuple[str, str]] = set()
        """The queues and users whose usage has changed, so that items may have an older one."""
        several = policy.fair and len(self.groups) > 1
        self._fair = several and listed.several_queues
        self._by_user = several and policy.fair_users and listed.several_users
        if self._by_user:
            turns = listed.turns()
            self.one_turn = not any(each.turned for each in turns.values())
            """Whether no gang has a turn of its own."""
            self._uses = queues.user_standings(turns, now)
            items = [self._first_of(run, 0) for each in turns.values() for run in each.runs]
        else:
            leads = [group.lead for group in self.groups]
            self.one_turn = not any(lead.turned for lead in leads)
            items = [
                (lead.rank, 0.0, group.keys[0], at, 0)
                for at, (group, lead) in enumerate(zip(self.groups, leads, strict=True))
            ]
        if self._fair:
            for item in items:
                name, run = self.groups[item[3]].queue, self._behind.get(item[3])
                self._heaps.setdefault(name, []).append(item)
                self._count(name, len(run[0]) if run is not None else 1)
        elif items:
            self._heaps[""] = items
        for heap in self._heaps.values():
            heapify(heap)

    def _first_of(self, run: tuple[int, ...], begin: int) -> Item:
        """Return the first gang of a group of one user's; the groups behind it in the run follow once it is taken.

        Until then they come after it, as they have the same rank and user.
        """
        at = run[begin]
        if begin + 1 < len(run):
            self._behind[at] = (run, begin + 1)
        group = self.groups[at]
        return (group.lead.rank, self._use(group.holder), group.keys[0], at, 0)

    def _queue(self, at: int) -> str:
        return self.groups[at].queue if self._fair else ""

    def push(self, at: int, first: int) -> None:
        """Add a group with its next gang at index `first`."""
        name = self._queue(at)
        heappush(self._heaps.setdefault(name, []), self._item(at, first))
        if self._fair:
            self._count(name, 1)

    def _item(self, at: int, first: int) -> Item:
        group = self.groups[at]
        key = group.keys[first]
        return (rank(key), self._use(group.holder) if self._by_user else 0.0, key, at, first)

    def close(self, finding: Finding, longest: float) -> None:
        """Leave out, until `reopen`, the groups of a finding of which no gang was looked at: all would be refused.

        Groups with a gang that takes at most `longest` seconds, or has no known duration, stay, if that is above 0.
        """
        self._closed[finding] = longest
        self._closed_anew = True

    def reopen(self) -> None:
        """Return from now on also the gangs of groups that were closed."""
        self._closed.clear()

    def looked_at(self, at: int) -> None:
        """Note that a gang of a group was refused; `close` does not concern the group any more."""
        self._looked_at.add(at)

    def pop(self) -> tuple[int, int, QueueKey | None] | None:
        """Return the next group, the index of its next gang, and the key of the next gang of any other group."""
        if self._closed_anew and len(self._closed) == self._kinds:
            self._closed_anew = False
            if self._all_closed():
                return None
        while True:
            name = self._next() if self._fair else ""
            heap = self._heaps.get(name)
            if not heap:
                return None
            found = self._first_open(heap, name)
            if found is not None:
                return found

    def _first_open(self, heap: list[Item], name: str) -> tuple[int, int, QueueKey | None] | None:
        """Take the groups of a queue in order up to one that is not closed; None if all of them are."""
        charged, closed, groups = self._charged if self._by_user else (), self._closed, self.groups
        behind = self._behind
        while heap:
            level, use, key, at, first = heappop(heap)
            if charged and (holder := groups[at].holder) in charged and (now := self._use(holder)) != use:
                heappush(heap, (level, now, key, at, first))
                continue
            if at in behind:
                heappush(heap, self._first_of(*behind.pop(at)))
            if self._fair:
                self._count(name, -1)
            longest = closed.get(groups[at].finding) if closed else None
            if longest is None or 0 < longest >= groups[at].lead.shortest or at in self._looked_at:
                return at, first, heap[0][2] if heap else None
        return None

    def _all_closed(self) -> bool:
        """Return whether no group is left of which a gang may be looked at; all findings are closed."""
        closed, groups, looked_at = self._closed, self.groups, self._looked_at
        for heap in self._heaps.values():
            for item in heap:
                group = groups[item[3]]
                longest = closed[group.finding]
                if 0 < longest >= group.lead.shortest or (looked_at and item[3] in looked_at):
                    return False
        if not any(closed.values()):
            return True  # of the groups behind others none was looked at
        waiting = (groups[at] for run, begin in self._behind.values() for at in run[begin:])
        return not any(0 < closed[group.finding] >= group.lead.shortest for group in waiting)

    def crowded(self, at: int, first: int) -> bool:
        """Return whether another queue or user may come first as soon as one gang of the group is placed."""
        if self._fair and any(self._heaps.values()):
            return True
        heap = self._heaps.get(self._queue(at))
        if not heap or not self._by_user:
            return False
        group = self.groups[at]
        level = rank(group.keys[first])
        if heap[0][0] > level:
            return False
        return any(each[0] == level and self.groups[each[3]].user != group.user for each in heap)

    def charged(self, queue: str, user: str) -> None:
        """Drop cached standings after a user's usage in a queue changed."""
        self._uses.pop((queue, user), None)
        self._charged.add((queue, user))
        if self._fair:
            for node in self._queues.find(queue).chain():
                self._standings.pop(node.name, None)

    def _use(self, holder: tuple[str, str]) -> float:
        found = self._uses.get(holder)
        if found is None:
            found = self._uses[holder] = self._queues.user_standing(*holder, self._now)
        return found

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
        """Add to the groups left in a queue and all above it."""
        for node in self._queues.find(name).chain():
            self._below[node.name] = self._below.get(node.name, 0) + more
