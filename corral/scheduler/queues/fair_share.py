"""Compute the fair share of every queue, cached until usage changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.queues.lending import owned_devices
from corral.scheduler.queues.queue_tree import QueueNode, Refusal, divide

_SLACK = 1e-6
DEVICES = 0
"""The index of devices in queue resource vectors."""
Holder = tuple[str, str, tuple[str, ...]]
"""A queue, a user and the user's groups; a gang counts against the bounds of all of them."""


class Fairness:
    """The fair shares of all queues in one cycle; `hungry` are the queues with waiting gangs."""

    def __init__(self, cluster: Cluster, hungry: frozenset[str]) -> None:
        self.queues = cluster.queues
        self._hungry = hungry
        self._moved: dict[str, list[int]] = {}
        """For each queue, the expected change of its usage once leaving gangs have ended and kept places are taken."""
        self._changes: dict[Holder, list[int]] = {}
        """The same change by holder."""
        self._parts: dict[str, dict[str, list[float]]] = {}
        self._ownership = cluster.ownership
        self._owned: dict[str, int] | None = None
        """For each queue, the devices of its owned cells in thousandths; they add to its deserved amount."""
        for job in cluster.gangs.leaving:
            gang = cluster.gangs.by_job[job]
            for task in gang.leaving:
                self.move((gang.queue, gang.user, gang.groups), gang.charges[task], -1)

    def move(self, holder: Holder, amounts: Sequence[int], sign: int) -> None:
        """Record that a queue and its user will hold more (or, with `sign` -1, less)."""
        self._parts.clear()
        change = self._changes.setdefault(holder, [0] * len(self.queues.names))
        for at, amount in enumerate(amounts):
            change[at] += sign * amount
        for node in self.queues.find(holder[0]).chain():
            moved = self._moved.setdefault(node.name, [0] * len(self.queues.names))
            for at, amount in enumerate(amounts):
                moved[at] += sign * amount

    def charged(self) -> None:
        """Drop the cached shares after the usage of some queue changed."""
        self._parts.clear()

    def refusal(
        self, holder: Holder, ask: Sequence[int], less: Iterable[tuple[Holder, Sequence[int]]]
    ) -> Refusal | None:
        """Return the refusal of `ask` after the expected changes and the release of `less`; None if there is none."""
        changes = [*((of, amounts, 1) for of, amounts in self._changes.items()), *((of, each, -1) for of, each in less)]
        for of, amounts, sign in changes:
            self.queues.charge(*of, amounts, sign)
        try:
            return self.queues.refusal(*holder, ask)
        finally:
            for of, amounts, sign in changes:
                self.queues.charge(*of, amounts, -sign)

    @property
    def changing(self) -> bool:
        """Return whether some queue is expected to hold other amounts than now."""
        return bool(self._changes)

    def held(self, node: QueueNode, at: int) -> int:
        """Return how much of a resource a queue is expected to hold."""
        moved = self._moved.get(node.name)
        return node.used[at] + (moved[at] if moved else 0)

    def beyond(self, node: QueueNode) -> list[float]:
        """Return by resource how much a queue will hold above its fair share; negative below it."""
        part = self.parts(node.parent)[node.name]
        return [self.held(node, at) - fair for at, fair in enumerate(part)]

    def entitled(self, own: QueueNode, top: QueueNode | None, ask: Sequence[int]) -> bool:
        """Return whether the queue stays within its fair share with `ask` added.

        The same must hold for its ancestors up to `top` (None: all of them).
        """
        for node in own.chain():
            part = self.parts(node.parent)[node.name]
            if any(amount and self.held(node, at) + amount > part[at] + _SLACK for at, amount in enumerate(ask)):
                return False
            if node is top:
                break
        return True

    def parts(self, parent: QueueNode | None) -> dict[str, list[float]]:
        """Return the fair share of each child of a queue.

        A child gets its deserved amount, then by weight its part of the rest, up to its demand.
        """
        if parent is None:
            return {}
        found = self._parts.get(parent.name)
        if found is None:
            found = self._parts[parent.name] = self._divided(parent)
        return found

    def _divided(self, parent: QueueNode) -> dict[str, list[float]]:
        if self._owned is None:
            self._owned = owned_devices(self._ownership)
        children = parent.children
        whole: Sequence[float] = self.queues.total
        if parent.parent is not None:
            whole = self.parts(parent.parent)[parent.name]
        parts: dict[str, list[float]] = {child.name: [] for child in children}
        for at, total in enumerate(whole):
            owned = self._owned if at == DEVICES else {}
            claims = [self._claim(child, at, owned.get(child.name, 0)) for child in children]
            for child, part in zip(children, divide(float(total), claims), strict=True):
                parts[child.name].append(part)
        return parts

    def _claim(self, child: QueueNode, at: int, owned: int) -> tuple[float, float, float]:
        wants = inf if self._wants(child) else float(self.held(child, at))
        most = min(child.limit[at], child.borrowing[at] + owned, wants)
        return (float(min(child.deserved[at] + owned, child.limit[at])), child.spec.weight, most)

    def _wants(self, node: QueueNode) -> bool:
        return node.name in self._hungry or any(self._wants(child) for child in node.children)
