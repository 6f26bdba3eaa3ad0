"""Nodes by what is left of their processors and devices: best fit, and the smallest dot product.

Source of the formulas: the comparison in FGD (Weng et al., ATC 2023), with its two resources. They are normalised by
the largest node of the cluster. `corral/sim/compat/openb_placing.py` has them as published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.device_count import WHOLE_DEVICE
from corral.scheduler.cluster.node_room import NodeRoom
from corral.scheduler.placement.shape import TaskShape
from corral.scheduler.policy.place import Waiting

_MOST: Final = (1 << 24) - 1
"""The highest rank."""


class Largest(NamedTuple):
    """The most that any node has, by which resources are normalised; at least 1."""

    cpu: int
    """Thousandths of processors."""
    devices: int
    """Millionths of a device."""


def largest(cluster: Cluster) -> Largest:
    """Return the most processors and devices of any node; O(nodes)."""
    nodes = [node for index in cluster.engines.values() for node in index.tree.nodes]
    devices = max((sum(device.parent < 0 for device in node.devices) for node in nodes), default=0)
    return Largest(max(1, max((node.cpu_millis for node in nodes), default=0)), max(1, devices * WHOLE_DEVICE))


@dataclass(frozen=True)
class BestFit:
    """The node with the least left afterwards, processors and devices weighted equally."""

    changes_with_time: ClassVar[bool] = False
    fills: ClassVar[bool] = True

    def prepare(self, cluster: Cluster, waiting: Waiting, now: float) -> Largest:
        """Return the largest node."""
        return largest(cluster)

    def rank(self, shape: TaskShape, node: NodeRoom, context: object) -> int:
        """Return the mean of what is left of each resource; O(devices)."""
        assert isinstance(context, Largest)
        cpu, devices = node.cpu - shape.cpu, node.left - node.asked(shape)
        share = cpu * context.devices + devices * context.cpu
        return _bounded(_MOST * share // (2 * context.cpu * context.devices))


@dataclass(frozen=True)
class DotProduct:
    """The node with the smallest product of what is left and what is asked for, after Tetris (SIGCOMM 2014)."""

    changes_with_time: ClassVar[bool] = False
    fills: ClassVar[bool] = True

    def prepare(self, cluster: Cluster, waiting: Waiting, now: float) -> Largest:
        """Return the largest node."""
        return largest(cluster)

    def rank(self, shape: TaskShape, node: NodeRoom, context: object) -> int:
        """Return half the product of the vectors (processors, devices); O(devices)."""
        assert isinstance(context, Largest)
        cpu, devices = node.cpu * shape.cpu, node.left * node.asked(shape)
        product = cpu * context.devices**2 + devices * context.cpu**2
        return _bounded(_MOST * product // (2 * (context.cpu * context.devices) ** 2))


def _bounded(rank: int) -> int:
    return min(max(rank, 0), _MOST)
