"""Index which tasks hold devices, by node, in one pass over all holdings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from corral.kernel.ids import TaskKey
from corral.kernel.units import DEVICE
from corral.scheduler.cluster.allocation import DeviceFraction
from corral.scheduler.cluster.cluster import Cluster, Hold
from corral.scheduler.cluster.device_count import held
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.cluster.topology_tree import Tree


class Use(NamedTuple):
    """The devices of a node that one task holds."""

    gang: RunningGang
    task: TaskKey
    hold: Hold
    leaving: bool

    def percent(self, device: int) -> int:
        """Return the percentage of a device's compute that it holds."""
        return next((round(part.compute / 10_000) for part in self._shares if part.device == device), 100)

    def thousandths(self, tree: Tree, at: int, mask: int) -> int:
        """Return the thousandths that its devices in `mask` count for."""
        if not self._shares and at not in tree.slice_conflicts:
            return DEVICE * mask.bit_count()
        return held(tree.nodes[at].devices, mask, self._shares, ("devices",))[0]

    @property
    def _shares(self) -> tuple[DeviceFraction, ...]:
        return self.hold.extra.shares if self.hold.extra is not None else ()


class Occupancy:
    """The tasks that use devices, by node; O(tasks) to build, and valid until the cluster changes."""

    def __init__(self, cluster: Cluster) -> None:
        self._by_node: dict[str, list[tuple[RunningGang, TaskKey, Hold]]] = defaultdict(list)
        by_node = self._by_node
        for job, gang in cluster.gangs.by_job.items():
            for task, hold in cluster.holds(job).items():
                by_node[hold.node].append((gang, task, hold))

    def uses(self, node: str) -> Iterator[Use]:
        """Yield the tasks on a node that hold devices."""
        for gang, task, hold in self._by_node.get(node, ()):
            if hold.devices:
                yield Use(gang, task, hold, task in gang.leaving)
