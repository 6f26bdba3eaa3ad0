"""FGD: the node, and the device of it, whose expected fragmentation grows least.

A node's fragmentation is the expectation, over the typical tasks, of the device capacity that such a task cannot use:
all that is left where the task does not fit, else what is left on devices with too little. Source: Weng et al., Beware
of Fragmentation, ATC 2023. `corral/sim/compat/openb_placing.py` computes it as published, with its score of 0 to 100.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import ClassVar, Final, NamedTuple

from corral.model.requests import DeviceRequest
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.device_count import WHOLE_DEVICE
from corral.scheduler.cluster.node_room import DeviceRoom, NodeRoom
from corral.scheduler.placement.shape import TaskShape
from corral.scheduler.policy.place import Waiting

MOST_TYPICAL: Final = 32
"""The most shapes that are typical."""
_COVERED: Final = 0.95
"""The typical shapes are the most frequent ones that cover this part of the tasks, as in the paper."""
_MIDDLE: Final = 1 << 23
"""The rank of a node whose fragmentation stays as it is."""
_UNIT: Final = 10
"""Millionths of a device for one rank, so that 83 devices can be told apart."""
_MOST_KEPT: Final = 1 << 16
"""The most ranks that are kept; beyond it all are forgotten."""


class Typical(NamedTuple):
    """What a typical task asks for; `part` is in millionths of each of its devices."""

    cpu: int
    devices: int
    part: int
    model: str = ""


Left = tuple[tuple[str, int], ...]
"""The model of each device of a node, and what is left of it."""


@dataclass(frozen=True)
class Expected:
    """The typical tasks with their weights; two are equal if these are."""

    typical: tuple[tuple[Typical, int], ...]
    ranks: dict[tuple[object, ...], int] = field(default_factory=dict, compare=False)
    """Ranks by shape and what is left: a cache."""
    known: dict[tuple[int, Left], int] = field(default_factory=dict, compare=False)
    """The fragmentation by what is left: a cache; tasks of different shapes often leave the same."""

    @cached_property
    def using_devices(self) -> tuple[tuple[int, int, int, str, int], ...]:
        """Return the fields of each typical task that uses devices, with its weight."""
        return tuple((*task, weight) for task, weight in self.typical if task.devices)

    @cached_property
    def weight(self) -> int:
        """Return the sum of all weights."""
        return sum(weight for _, weight in self.typical)

    def fragmentation(self, cpu: int, left: Left) -> int:
        """Return the fragmentation of a node, in millionths of a device times the sum of the weights."""
        found = self.known.get((cpu, left))
        if found is None:
            if len(self.known) >= _MOST_KEPT:
                self.known.clear()
            found = self.known[cpu, left] = self._fragmentation(cpu, left)
        return found

    def _fragmentation(self, cpu: int, left: Left) -> int:
        """Return it for a new state; O(typical tasks x log devices), for those that name a model O(devices)."""
        amounts = sorted([amount for _, amount in left])
        above = [*accumulate(reversed(amounts), initial=0)]
        lost, count = above[-1] * self.weight, len(amounts)
        for needed, devices, part, named, weight in self.using_devices:
            if needed > cpu:
                continue
            if named:
                usable = [amount for model, amount in left if amount >= part and model == named]
                number, sum_of_usable = len(usable), sum(usable)
            else:
                number = count - bisect_left(amounts, part)
                sum_of_usable = above[number]
            if number >= devices:
                lost -= weight * sum_of_usable
        return lost

    def growths(self, shape: TaskShape, node: NodeRoom) -> list[tuple[int, int, int]]:
        """Return by how much fragmentation grows for each choice of devices, with what is left of it and its number.

        A task with whole devices, or none, has one choice.
        """
        cpu, left = node.cpu - shape.cpu, tuple([(device.model, max(0, device.left)) for device in node.devices])
        before = self.fragmentation(node.cpu, left)
        fitting = [(at, device) for at, device in enumerate(node.devices) if 0 < device.takes <= device.left]
        if shape.share is None:
            chosen = fitting[: shape.devices]
            first = min([device for _, device in chosen], default=None)
            growth = self.fragmentation(cpu, _without(left, chosen)) - before
            return [(growth, first.left if first else 0, first.number if first else 0)]
        found, known = [], dict[tuple[str, int, int], int]()
        for at, device in fitting:
            kind = device[1:]
            if kind not in known:  # a part of another device of the kind leaves as much
                known[kind] = self.fragmentation(cpu, _without(left, [(at, device)])) - before
            found.append((known[kind], device.left, device.number))
        return found


def _without(left: Left, chosen: Sequence[tuple[int, DeviceRoom]]) -> Left:
    """Return what is left once a task has taken its part of these devices, named with their positions."""
    after = list(left)
    for at, device in chosen:
        after[at] = (device.model, device.left - device.takes)
    return tuple(after)


@dataclass(frozen=True)
class FragmentationGradient:
    """The node whose expected fragmentation grows least, by the tasks that run and wait."""

    changes_with_time: ClassVar[bool] = False
    fills: ClassVar[bool] = False
    ranks_alike: ClassVar[bool] = True

    def prepare(self, cluster: Cluster, waiting: Waiting, now: float) -> Expected:
        """Return the typical tasks: the most frequent of all that run and wait, counted in powers of two.

        So they change seldom. O(kinds of running tasks + groups of equal waiting gangs).
        """
        counts: dict[Typical, int] = {}
        memory = _Memory(cluster)
        for request, number in waiting:
            for role in request.roles:
                task = _typical(role.cpu_millis, role.devices, memory)
                counts[task] = counts.get(task, 0) + number * len(role.indexes)
        for (cpu_millis, ask), number in cluster.gangs.asked().items():
            task = _typical(cpu_millis, ask, memory)
            counts[task] = counts.get(task, 0) + number
        return Expected(_most_frequent(counts))

    def rank(self, shape: TaskShape, node: NodeRoom, context: object) -> int:
        """Return by how much fragmentation grows with the best device; O(typical tasks x devices²)."""
        assert isinstance(context, Expected)
        key = (shape, node.cpu, node.devices)
        found = context.ranks.get(key)
        if found is None:
            growth = min((growth for growth, _, _ in context.growths(shape, node)), default=0)
            found = _MIDDLE + growth // (_UNIT * max(1, context.weight))
            if len(context.ranks) >= _MOST_KEPT:
                context.ranks.clear()
            context.ranks[key] = found = min(max(found, 0), 2 * _MIDDLE - 1)
        return found

    def device(self, shape: TaskShape, node: NodeRoom, context: object) -> Sequence[int]:
        """Return the devices by the growth of fragmentation, on ties the fullest first."""
        assert isinstance(context, Expected)
        return [number for _, _, number in sorted(context.growths(shape, node))]


def _most_frequent(counts: Mapping[Typical, int]) -> tuple[tuple[Typical, int], ...]:
    """Return the shapes that cover most tasks, each with its count rounded down to a power of two."""
    graded = sorted([(1 << count.bit_length() - 1, task) for task, count in counts.items() if count], reverse=True)
    total, covered, found = sum([weight for weight, _ in graded]), 0, []
    for weight, task in graded[:MOST_TYPICAL]:
        if covered >= _COVERED * total:
            break
        found.append((task, weight))
        covered += weight
    return tuple(found)


class _Memory:
    """The memory of the largest device of a cluster, looked up when a task asks for bytes of one."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found = 0

    def part(self, size: int) -> int:
        """Return the millionths that bytes are of the largest device; at most all of it."""
        if not self._found:
            nodes = (node for index in self._cluster.engines.values() for node in index.tree.nodes)
            self._found = max((device.memory_bytes for node in nodes for device in node.devices), default=0) or 1
        return min(WHOLE_DEVICE, size * WHOLE_DEVICE // self._found)


def _typical(cpu_millis: int, ask: DeviceRequest, memory: _Memory) -> Typical:
    share = ask.share
    if share is None or not share.memory_bytes:
        return _typical_of(cpu_millis, ask)
    part = max(1, share.compute, share.memory, memory.part(share.memory_bytes))
    return Typical(cpu_millis, len(ask.ids) or ask.count, part, ask.model)


@lru_cache(4096)
def _typical_of(cpu_millis: int, ask: DeviceRequest) -> Typical:
    """Return what a task asks for that names no bytes of a device."""
    part = WHOLE_DEVICE if ask.share is None else max(1, ask.share.compute, ask.share.memory)
    return Typical(cpu_millis, len(ask.ids) or ask.count, part, ask.model)
