"""The order by the Gittins index: what a job attained so far is compared with what ended jobs had attained."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Final

from corral.model.requests import GangRequest
from corral.scheduler.policy.grades import HIGHEST, grade, least
from corral.scheduler.policy.history import History
from corral.scheduler.policy.order import OrderKey
from corral.scheduler.policy.service_orders import LeastAttainedService, reached_at

_UNKNOWN: Final = LeastAttainedService()


@dataclass(frozen=True)
class GittinsIndex:
    """Highest Gittins index first (2D-Gittins): the gang that most likely ends soon for the service it takes.

    Two-dimensional Gittins index of Tiresias (Gu et al., NSDI 2019, section 3.3), for jobs whose duration nobody knows
    while the durations of earlier jobs are known. Service is in device-seconds, in grades of four for each doubling
    (`ServiceDistribution.service_per_end`). A job beyond the service of all ended jobs comes last. Until `least_ended`
    jobs are over, the order is that of 2D-LAS, which needs no distribution. A job may wait without a bound.
    O(1) a gang, and O(grades squared) once for each end of a job.
    """

    least_ended: float = 30.0
    """How many ended jobs make a distribution."""
    unknown: LeastAttainedService = _UNKNOWN
    """The order before that."""
    changes_with_time: ClassVar[bool] = True
    """Each end of a job changes the keys of all gangs."""

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the expected device-seconds per end, then the submission time."""
        if history.ended.count < self.least_ended:
            return self.unknown.key(gang, history, now)
        return (history.ended.service_per_end(history.of(gang.job, now).device_seconds), gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return when a running job reaches the next grade with a lower index."""
        ended = history.ended
        if ended.count < self.least_ended:
            return self.unknown.moves_back_at(gang, history, now)
        own = grade(history.of(gang.job, now).device_seconds)
        here = ended.service_per_end(least(own))
        worse = next((each for each in range(own + 1, HIGHEST + 1) if ended.service_per_end(least(each)) > here), None)
        return inf if worse is None else reached_at(least(worse), gang, history, now)
