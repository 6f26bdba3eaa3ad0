"""Sizes of elastic jobs by their goodput: the *allot* part `goodput`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import ClassVar, Final, NamedTuple

from corral.kernel.ids import JobId
from corral.kernel.units import DEVICE
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.policy.allot import ElasticGang, Target
from corral.scheduler.policy.goodput import Goodput

WORTH: Final = 0.1
"""The goodput that a further task must add, as a part of what each task adds at the job's smallest size."""
KEPT: Final = 1.25
"""By how much more a task counts that runs already: a change costs a restart, and measurements scatter."""


@dataclass(frozen=True)
class GoodputSizes:
    """The sizes with the highest sum of the jobs' goodputs, each relative to the job's own smallest size.

    After Pollux (Qiao et al., OSDI 2021) and Sia (Jayaram Subramanya et al., SOSP 2023), with a greedy search in place of
    theirs: it gives devices one task at a time where they add most, which is the optimum for goodputs that grow ever
    more slowly. A gang that reports no throughput, or uses no devices, gets no target.
    """

    changes_with_time: ClassVar[bool] = False

    def targets(self, cluster: Cluster, gangs: Iterable[ElasticGang], now: float) -> Mapping[JobId, Target]:
        """Return the size of each gang that has reported its throughput. O(n log n) in the tasks that are given."""
        sized, widest = {}, largest_node(cluster)
        for gang in gangs:
            if (found := _Sized.of(gang, cluster, widest, now)) is not None:
                sized[gang.request.job] = found
        free = (cluster.queues.total[0] - cluster.queues.root.used[0]) // DEVICE
        room = free + sum(each.freed for each in sized.values())
        sizes = {job: each.gang.least for job, each in sized.items()}
        heap = [(-each.gain(each.gang.least), job) for job, each in sized.items() if each.grows(each.gang.least)]
        heapify(heap)
        while heap and room > 0:
            _, job = heappop(heap)
            each = sized[job]
            if each.devices > room:
                continue
            room -= each.devices
            sizes[job] += 1
            if each.grows(sizes[job]):
                heappush(heap, (-each.gain(sizes[job]), job))
        return {job: Target(size) for job, size in sizes.items()}


def largest_node(cluster: Cluster) -> int:
    """Return the healthy devices of the node that has most of them; O(nodes)."""
    return max((mask.bit_count() for index in cluster.engines.values() for mask in index.offered), default=0)


class _Sized(NamedTuple):
    """An elastic gang with its goodput."""

    gang: ElasticGang
    goodput: Goodput
    fixed: int
    """Devices of the tasks that it has at any size."""
    devices: int
    """Devices of each further task."""

    @classmethod
    def of(cls, gang: ElasticGang, cluster: Cluster, widest: int, now: float) -> _Sized | None:
        """Return a gang that has reported its throughput and grows by devices; None for another."""
        further = [role.devices.count for role in gang.request.roles if len(role.indexes) > role.minimum]
        fixed = sum(role.devices.count * role.minimum for role in gang.request.roles)
        if not further or not min(further) or not fixed:
            return None
        goodput = Goodput.of(cluster.history.of(gang.request.job, now), fixed, widest)
        return cls(gang, goodput, fixed, min(further)) if goodput is not None else None

    @property
    def freed(self) -> int:
        """Return the devices that it holds beyond its smallest size; below 0 if it waits for those."""
        return (self.gang.held - self.gang.least) * self.devices if self.gang.held else -self.fixed

    def grows(self, tasks: int) -> bool:
        """Return whether it may have one task more than this, and is worth it."""
        known = max(self.goodput.most, self._on(self.gang.held))
        return tasks < self.gang.most and self._on(tasks + 1) <= known and self.gain(tasks) * self.devices >= WORTH

    def gain(self, tasks: int) -> float:
        """Return what each device of one task more adds, in goodputs of a task at the smallest size."""
        base = self.goodput.at(self.fixed) / self.gang.least
        added = (self.goodput.at(self._on(tasks + 1)) - self.goodput.at(self._on(tasks))) / base
        return added / self.devices * (KEPT if tasks < self.gang.held else 1.0)

    def _on(self, tasks: int) -> int:
        return self.fixed + (tasks - self.gang.least) * self.devices
