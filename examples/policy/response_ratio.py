"""Highest response ratio next (Brinch Hansen, 1971), as a scheduling policy for Corral.

A job's response ratio is (waiting time + remaining time) / remaining time. Short jobs go first, and a long job overtakes
them when it has waited long enough, so no job waits without a bound.
"""

from __future__ import annotations

from corral.model.requests import GangRequest
from corral.scheduler.policy.history import History
from corral.scheduler.policy.policy import Policy

UNKNOWN_SECONDS = 86_400.0
"""The duration assumed for a job that declares none."""


class HighestResponseRatio:
    """The waiting job with the highest response ratio first. O(1) a gang."""

    changes_with_time = True

    def key(self, gang: GangRequest, history: History, now: float) -> tuple[float, float]:
        """Return the response ratio, negated, then the time of submission in seconds since 1970."""
        received = history.of(gang.job, now).service_seconds
        remaining = max(1.0, (gang.max_duration_seconds or UNKNOWN_SECONDS) - received)
        waited = max(0.0, now - gang.submitted_at - received)
        return (-(waited + remaining) / remaining, gang.submitted_at)


POLICY = Policy("response-ratio", HighestResponseRatio(), preemption=True)
