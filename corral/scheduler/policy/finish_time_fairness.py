"""The order by finish-time fairness: the job that the shared cluster has slowed most is next."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Final

from corral.model.requests import GangRequest
from corral.scheduler.policy.grades import grade
from corral.scheduler.policy.history import History, JobHistory
from corral.scheduler.policy.order import REVIEW_SECONDS, OrderKey

_FINE: Final = 1024.0
"""A power of two: steps of rho reach down to a thousandth, for jobs much wider than their share."""


@dataclass(frozen=True)
class FinishTimeFairness:
    """Worst finish-time fairness first, in steps, then earlier submission.

    The measure of Themis (Mahajan et al., NSDI 2020) without its auction: rho is the estimated finish time in the shared
    cluster, if the job runs from now on, divided by the time that it needs on an equal share of the machines. A job of
    more devices than its share takes turns on it, as in Gavel (Narayanan et al., OSDI 2020). So with the time waited and
    the time needed in all, both in seconds, it is (waited + needed) / (needed x max(1, devices / share)).

    The time needed is known from reported progress, otherwise from the declared duration. A job that gives neither needs
    twice what it received, and at least `unknown_seconds`. Steps of rho (1, 1.25, 1.5, 1.75, 2, 2.5, …) keep two jobs
    from preempting each other in turns. A job's rho grows without a bound while it waits. O(roles) a gang.
    """

    unknown_seconds: float = 3600.0
    """The least time that a job without estimate is taken to need: an hour, in seconds."""
    changes_with_time: ClassVar[bool] = True

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the step of rho, negated, then the submission time."""
        return (-grade(_FINE * self.rho(gang, history, now)), gang.submitted_at)

    def rho(self, gang: GangRequest, history: History, now: float) -> float:
        """Return the finish-time fairness of a job that runs from now on: 1 is as on its share, more is worse."""
        known = history.of(gang.job, now)
        waited = max(0.0, now - gang.submitted_at - known.service_seconds)
        devices = sum(role.devices.count * len(role.indexes) for role in gang.roles)
        return (1 + waited / self.needed_seconds(gang, known)) / max(1.0, devices / history.share)

    def needed_seconds(self, gang: GangRequest, known: JobHistory) -> float:
        """Return the estimated service of a job from its begin to its end, in seconds, and at least one."""
        if known.progress:
            return max(1.0, known.service_seconds / known.progress)
        if gang.max_duration_seconds:
            return max(1.0, gang.max_duration_seconds, known.service_seconds)
        return max(self.unknown_seconds, 2 * known.service_seconds)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return when the rho of a running job begins to fall, because its estimate grows."""
        known = history.of(gang.job, now)
        if gang.max_duration_seconds and not known.progress:
            return inf
        grows_at = now if known.progress else now + self.unknown_seconds / 2 - known.service_seconds
        return max(grows_at, now + REVIEW_SECONDS)
