"""Sizes of elastic jobs by the auction of Themis: the *allot* part `themis`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import ClassVar, NamedTuple

from corral.kernel.ids import JobId
from corral.kernel.units import DEVICE
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.policy.allot import ElasticGang, Target
from corral.scheduler.policy.finish_time_fairness import FinishTimeFairness
from corral.scheduler.policy.goodput import Size, StepTime, fit, with_profile
from corral.scheduler.policy.goodput_sizes import largest_node
from corral.scheduler.policy.history import JobHistory
from corral.scheduler.policy.partial_allocation import Bid, auction

_ESTIMATE = FinishTimeFairness()
_PERFECT = StepTime(1.0)
"""The scaling of a job that neither reported nor declared a throughput."""


@dataclass(frozen=True)
class ThemisSizes:
    """Finish-time fairness by partial-allocation auctions (Themis, Mahajan et al., NSDI 2020, section 4).

    The devices beyond the smallest sizes of the gangs are auctioned. Each gang bids for further tasks with 1 / rho, where
    rho is its finish time at that size, over its finish time on an equal share of the machines. The worst `1 - fairness`
    of the gangs bid, and keep what the auction leaves them of their fair part. The rest goes to all gangs in turns, the
    worst rho first, so no device is idle that a gang can use. A gang keeps its size for a lease, and is then auctioned
    again. Gangs without devices get no target. O(bidders × devices × sizes) an auction.
    """

    fairness: float = 0.8
    """Themis' filter f, from 0 to 1: with more, fewer and worse treated gangs bid."""
    lease_seconds: float = 600.0
    """How long a gang keeps its size after it changed."""
    changes_with_time: ClassVar[bool] = True

    def targets(self, cluster: Cluster, gangs: Iterable[ElasticGang], now: float) -> Mapping[JobId, Target]:
        """Return the size of each elastic gang that uses devices."""
        grown = [gang for gang in gangs if gang.task_devices and gang.least_devices]
        share, widest = cluster.queues.total[0] / DEVICE / max(1, len(grown)), largest_node(cluster)
        leased = {gang.request.job: Target(gang.held) for gang in grown if self._is_leased(gang, cluster, now)}
        bidders = [_Bidder.of(gang, cluster, now, share, widest) for gang in grown if gang.request.job not in leased]
        bidders.sort(key=lambda each: (-each.rho(0), each.gang.request.job))
        free = (cluster.queues.total[0] - cluster.queues.root.used[0]) // DEVICE
        room = max(0, free + sum(each.gang.spare_devices for each in bidders))
        further = self._divide(bidders, room)
        return leased | {
            each.gang.request.job: Target(each.gang.least + count) for each, count in zip(bidders, further, strict=True)
        }

    def _is_leased(self, gang: ElasticGang, cluster: Cluster, now: float) -> bool:
        since = cluster.history.of(gang.request.job, now).held_since
        return since is not None and gang.least <= gang.held <= gang.most and now < since + self.lease_seconds

    def _divide(self, bidders: Sequence[_Bidder], room: int) -> list[int]:
        """Return how many further tasks each bidder gets of so many devices; the worst treated ones come first."""
        further = [0] * len(bidders)
        if not bidders:
            return further
        bidding = bidders[: max(1, round(len(bidders) * (1 - self.fairness)))]
        unit = gcd(*(each.devices for each in bidding))
        wanted = sum((each.gang.most - each.gang.least) * each.devices for each in bidding)
        awards = auction([each.bid(unit) for each in bidding], min(room, wanted) // unit)
        for at, (each, award) in enumerate(zip(bidding, awards, strict=True)):
            further[at] = int(award.fair * unit // each.devices * award.kept)
            room -= further[at] * each.devices
        return _in_turns(bidders, further, room)


@lru_cache(4096)
def _step(reported: tuple[tuple[Size, float], ...], declared: tuple[tuple[int, int, float], ...]) -> StepTime:
    """Return the scaling of a job; most jobs say nothing new between two plans."""
    return fit(with_profile(JobHistory(throughput=dict(reported)), declared).throughput) or _PERFECT


def _in_turns(bidders: Sequence[_Bidder], further: list[int], room: int) -> list[int]:
    """Give what is left one task at a time to the bidders in turns."""
    gave = True
    while gave:
        gave = False
        for at, each in enumerate(bidders):
            if each.devices <= room and each.gang.least + further[at] < each.gang.most:
                further[at] += 1
                room -= each.devices
                gave = True
    return further


class _Bidder(NamedTuple):
    """An elastic gang with its estimated work; speeds are work per second."""

    gang: ElasticGang
    devices: int
    step: StepTime
    widest: int
    waited: float
    """Seconds since its submission."""
    left: float
    """Work that is not done."""
    alone: float
    """Seconds that all its work takes on an equal share of the machines."""

    @classmethod
    def of(cls, gang: ElasticGang, cluster: Cluster, now: float, share: float, widest: int) -> _Bidder:
        """Return the estimate of a gang whose equal share is so many devices; the largest node has `widest`."""
        known = cluster.history.of(gang.request.job, now)
        step = _step(tuple(known.throughput.items()), gang.request.scaling)
        usual = known.device_seconds / known.service_seconds if known.service_seconds else gang.least_devices
        speed = step.speed(usual, widest)
        work = _ESTIMATE.needed_seconds(gang.request, known) * speed
        own = min(share, gang.devices_of(gang.most))
        alone = work / step.speed(own, widest)
        left = max(0.0, work - known.service_seconds * speed)
        return cls(gang, gang.task_devices, step, widest, max(0.0, now - gang.request.submitted_at), left, alone)

    def rho(self, further: int) -> float:
        """Return its finish time with so many further tasks, over that on its equal share."""
        speed = self.step.speed(self.gang.devices_of(self.gang.least + further), self.widest)
        return max(1e-9, (self.waited + self.left / speed) / self.alone)

    def bid(self, unit: int) -> Bid:
        """Return its values for 0, 1, 2, 4, … further tasks, by units of so many devices."""
        most, sizes, size = self.gang.most - self.gang.least, [0], 1
        while size < most:
            sizes.append(size)
            size *= 2
        return {count * self.devices // unit: 1 / self.rho(count) for count in [*sizes, most]}
