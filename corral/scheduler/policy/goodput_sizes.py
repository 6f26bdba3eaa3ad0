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
from corral.scheduler.policy.goodput import Goodput, with_profile

WORTH: Final = 0.1
"""The goodput that a further task must add, as a part of what each task adds at the job's smallest size."""
KEPT: Final = 1.25
"""By how much more a task counts that runs already: a change costs a restart, and measurements scatter."""


@dataclass(frozen=True)
class GoodputSizes:
    """The sizes with the highest sum of the jobs' goodputs, each relative to the job's own smallest size.

    After Pollux (Qiao et al., OSDI 2021) and Sia (Jayaram Subramanya et al., SOSP 2023), with a greedy search in place of
    theirs: it gives devices one task at a time where they add most, which is the optimum for goodputs that grow ever
    more slowly. A gang without a reported or declared throughput, or without devices, gets no target.
    """

    changes_with_time: ClassVar[bool] = False

    def targets(self, cluster: Cluster, gangs: Iterable[ElasticGang], now: float) -> Mapping[JobId, Target]:
        """Return the size of each gang whose throughput is known. O(n log n) in the tasks that are given."""
        sized, widest = {}, largest_node(cluster)
        for gang in gangs:
            if (found := _Sized.of(gang, cluster, widest, now)) is not None:
                sized[gang.request.job] = found
        free = (cluster.queues.total[0] - cluster.queues.root.used[0]) // DEVICE
        room = free + sum(each.gang.spare_devices for each in sized.values())
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
    devices: int
    """Devices of each task beyond the smallest size."""

    @classmethod
    def of(cls, gang: ElasticGang, cluster: Cluster, widest: int, now: float) -> _Sized | None:
        """Return a gang whose throughput is known and that grows by devices; None for another."""
        if not gang.task_devices or not gang.least_devices:
            return None
        known = with_profile(cluster.history.of(gang.request.job, now), gang.request.scaling)
        goodput = Goodput.of(known, gang.least_devices, widest)
        return cls(gang, goodput, gang.task_devices) if goodput is not None else None

    def grows(self, tasks: int) -> bool:
        """Return whether it may have one task more than this, and is worth it."""
        known = max(self.goodput.most, self.gang.devices_of(self.gang.held))
        if tasks >= self.gang.most or self.gang.devices_of(tasks + 1) > known:
            return False
        return self.gain(tasks) * self.devices >= WORTH

    def gain(self, tasks: int) -> float:
        """Return what each device of one task more adds, in goodputs of a task at the smallest size."""
        at, gang = self.goodput.at, self.gang
        added = at(gang.devices_of(tasks + 1)) - at(gang.devices_of(tasks))
        base = at(gang.least_devices) / gang.least
        return added / base / self.devices * (KEPT if tasks < gang.held else 1.0)
