"""A random node that fits, the same each time: by a hash of the node, what is left of it, and the task's shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from corral.kernel.draw import draw_integer
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.node_room import NodeRoom
from corral.scheduler.placement.shape import TaskShape
from corral.scheduler.policy.place import Waiting


@dataclass(frozen=True)
class RandomFit:
    """A random node, and of it a random device: by hashes with the seed, drawn anew when what is left changes.

    The same state has the same choice on every machine.
    """

    seed: int = 0
    changes_with_time: ClassVar[bool] = False
    fills: ClassVar[bool] = False

    def prepare(self, cluster: Cluster, waiting: Waiting, now: float) -> object:
        """Return None."""
        return None

    def rank(self, shape: TaskShape, node: NodeRoom, context: object) -> int:
        """Return 24 bits of the hash; O(devices)."""
        return draw_integer(self.seed, shape, node) >> 40

    def device(self, shape: TaskShape, node: NodeRoom, context: object) -> Sequence[int]:
        """Return all devices in a random order."""
        return sorted(
            (device.number for device in node.devices), key=lambda number: draw_integer(self.seed, shape, node, number)
        )
