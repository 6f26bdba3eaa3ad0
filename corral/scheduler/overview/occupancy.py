"""Why: the tree of cells asks of thousands of devices who is on them; one pass over what is held answers for all."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from corral.kernel.ids import TaskKey
from corral.scheduler.cluster import Cluster
from corral.scheduler.gangs import Running


class Use(NamedTuple):
    """What one task holds of a node; `parts` are the percentages of the devices that it has only in part."""

    mask: int
    gang: Running
    task: TaskKey
    guest: bool
    leaving: bool
    parts: dict[int, int]


class Occupancy:
    """Who uses which devices, by node: O(tasks) to make, and good until the cluster changes."""

    def __init__(self, cluster: Cluster) -> None:
        self.by_node: dict[str, list[Use]] = {}
        self._sums: dict[str, tuple[int, int, int]] = {}
        owning = {name for name, cells in cluster.ownership.cells.items() if cells.types}
        for job, gang in cluster.gangs.by_job.items():
            for task, hold in cluster.holds(job).items():
                if hold.devices:
                    guest = task not in gang.cells and hold.node.partition("/")[0] in owning
                    shares = hold.extra.shares if hold.extra is not None else ()
                    parts = {part.device: round(part.compute / 10_000) for part in shares}
                    use = Use(hold.devices, gang, task, guest, task in gang.leaving, parts)
                    self.by_node.setdefault(hold.node, []).append(use)

    def masks(self, node: str) -> tuple[int, int, int]:
        """The devices of a node that are used, whose tasks were told to end, and that guests use."""
        found = self._sums.get(node)
        if found is None:
            used = leaving = guests = 0
            for use in self.by_node.get(node, ()):
                used |= use.mask
                leaving |= use.mask if use.leaving else 0
                guests |= use.mask if use.guest else 0
            found = self._sums[node] = (used, leaving, guests)
        return found

    def count(self, node: str, mask: int, into: Counter[str]) -> None:
        """Count, by queue, the devices of a mask that are used; a device in parts counts for each queue on it."""
        for use in self.by_node.get(node, ()):
            if use.mask & mask:
                into[use.gang.queue] += (use.mask & mask).bit_count()
