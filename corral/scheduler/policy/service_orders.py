"""Orders by the service that jobs still need or have received: SRTF, SRSF and two-dimensional LAS.

All three see the same quantities. The *service* of a job is the time during which it holds resources, in seconds. Its
*attained service* is that time multiplied by its devices, in device-seconds; a job without devices counts as one device.
Growth of a running gang keeps the key that it had when it began to wait.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from corral.model.requests import GangRequest
from corral.scheduler.policy.history import History
from corral.scheduler.policy.order import REVIEW_SECONDS, OrderKey


def remaining_seconds(gang: GangRequest, history: History, now: float) -> float:
    """Return the estimated service that a job still needs, in seconds; infinite if nothing is known.

    A reported progress gives the estimate, at the speed of the work so far. Otherwise it is the declared duration
    (`maxDuration`) less the service received.
    """
    progress = history.progress(gang.job)
    if progress:
        return history.service_seconds(gang.job, now) * (1 - progress) / progress
    if not gang.max_duration_seconds:
        return inf
    return max(0.0, gang.max_duration_seconds - history.service_seconds(gang.job, now))


def estimate_grows_at(gang: GangRequest, history: History, now: float) -> float:
    """Return when the estimate of a running job's remaining service is larger than now, if no event comes.

    From a declared duration it only falls. From a reported progress it grows until the next report: look in a minute.
    """
    return now + REVIEW_SECONDS if history.progress(gang.job) else inf


def reached_at(
    device_seconds: float, gang: GangRequest, history: History, now: float, attained: float | None = None
) -> float:
    """Return when the attained service of a running job reaches an amount, a millisecond late for rounding.

    It is infinite for a job that holds nothing. `attained` is what the job attained until now, if the caller has it.
    """
    if attained is None:
        attained = history.device_seconds(gang.job, now)
    each_second = history.device_seconds(gang.job, now + 1) - attained
    return now + (device_seconds - attained) / each_second + 0.001 if each_second else inf


def device_count(gang: GangRequest) -> float:
    """Return the devices of all tasks of a gang; a fraction counts as a whole device, a gang without devices as one."""
    return float(sum(len(role.indexes) * (len(role.devices.ids) or role.devices.count) for role in gang.roles)) or 1.0


@dataclass(frozen=True)
class ShortestRemainingTime:
    """Shortest remaining time first (SRTF): jobs of which nothing is known come last, then earlier submission.

    It minimises the mean completion time on one machine (Schrage, 1968). A job that has become the longest may wait
    without a bound. O(roles) a gang.
    """

    changes_with_time: ClassVar[bool] = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the remaining seconds, then the submission time."""
        return (remaining_seconds(gang, history, now), gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return infinity, or a minute from now where the estimate grows."""
        return estimate_grows_at(gang, history, now)


@dataclass(frozen=True)
class ShortestRemainingService:
    """Shortest remaining service first (SRSF): remaining time multiplied by devices, then earlier submission.

    Tiresias (Gu et al., NSDI 2019) names it as the two-dimensional form of SRTF for gangs of several devices. A job that
    has become the largest may wait without a bound. O(roles) a gang.
    """

    changes_with_time: ClassVar[bool] = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the remaining device-seconds, then the submission time."""
        return (remaining_seconds(gang, history, now) * device_count(gang), gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return infinity, or a minute from now where the estimate grows."""
        return estimate_grows_at(gang, history, now)


@dataclass(frozen=True)
class LeastAttainedService:
    """Least attained service first (2D-LAS): by its level of device-seconds received, then earlier submission.

    Discretized two-dimensional LAS of Tiresias (Gu et al., NSDI 2019), for jobs whose duration nobody knows. A job
    begins in the first level, moves down a level each time its attained service reaches the next bound, and never
    moves up. Jobs of one level go in order of submission. O(log levels) a gang.
    """

    bounds: tuple[float, ...] = (57_600.0,)
    """Device-seconds at which a job moves down: 16 device-hours, as Pollux (Qiao et al., OSDI 2021) tuned Tiresias."""
    changes_with_time: ClassVar[bool] = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the level, from 0, then the submission time."""
        return (bisect_right(self.bounds, history.device_seconds(gang.job, now)), gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return when the attained service of a running job reaches the next bound."""
        attained = history.device_seconds(gang.job, now)
        level = bisect_right(self.bounds, attained)
        return inf if level == len(self.bounds) else reached_at(self.bounds[level], gang, history, now, attained)
