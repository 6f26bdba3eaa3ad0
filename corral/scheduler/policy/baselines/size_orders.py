"""Orders by the number of devices: smallest first and largest first."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from corral.model.requests import GangRequest
from corral.scheduler.policy.history import History
from corral.scheduler.policy.order import OrderKey
from corral.scheduler.policy.service_orders import device_count


@dataclass(frozen=True)
class SmallestFirst:
    """Fewest devices first, then earlier submission: the baseline SJF of Tiresias' simulator (Gu et al., NSDI 2019).

    A large job may wait without a bound while small ones come. O(roles) a gang.
    """

    changes_with_time: ClassVar[bool] = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the devices, then the submission time."""
        return (device_count(gang), gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return infinity: keys never change."""
        return inf


@dataclass(frozen=True)
class LargestFirst:
    """Most devices first, then earlier submission: decreasing first fit of bin packing (Johnson, 1973).

    Small jobs fill what large ones leave, and may wait without a bound while large ones come. O(roles) a gang.
    """

    changes_with_time: ClassVar[bool] = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the devices, negated, then the submission time."""
        return (-device_count(gang), gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return infinity: keys never change."""
        return inf
