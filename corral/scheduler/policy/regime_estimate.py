"""Predict the remaining work of a job whose speed changes with its batch size, from what it has reported so far.

Shockwave (Zheng et al., NSDI 2023, section 5): a Dirichlet distribution over a job's regimes, updated by each of them that
it has gone through. Here the regimes are the batch sizes that the job has reported, with the speeds that it had in them.
"""

from __future__ import annotations

from math import inf
from typing import Final

from corral.model.requests import GangRequest
from corral.scheduler.policy.history import JobHistory

_LEAST_SECONDS: Final = 1.0
"""The least remaining time of a job that has not ended."""


def predicted_seconds(gang: GangRequest, known: JobHistory, unknown: float) -> float:
    """Return the predicted remaining service of a job in seconds, at least one.

    Reported progress gives it, by the regimes. Otherwise it is the declared duration (`maxDuration`) less the service
    received. A job that gives neither needs twice what it received, and at least `unknown` seconds in all.
    """
    by_regimes = _by_regimes(known)
    if by_regimes < inf:
        return max(_LEAST_SECONDS, by_regimes)
    if gang.max_duration_seconds:
        return max(_LEAST_SECONDS, gang.max_duration_seconds - known.service_seconds)
    return max(unknown, 2 * known.service_seconds) - known.service_seconds


def _by_regimes(known: JobHistory) -> float:
    """Return the prediction from reported progress; infinite if there is none. O(regimes).

    Each of k regimes is expected to take a k-th of the work, before anything is seen. What was done in a regime is added,
    and all are scaled to the whole work again; what is left of each is what it lacks. The service since the latest
    report is taken to have gone on with that.
    """
    seen = [regime for regime in known.regimes if regime.progress > 0]
    done = known.progress or 0.0
    if not seen or not 0 < done <= 1:
        return inf
    total = sum(regime.progress for regime in seen)
    expected = [(1 / len(seen) + regime.progress) / (1 + total) for regime in seen]
    lacking = [max(0.0, whole - regime.progress) for whole, regime in zip(expected, seen, strict=True)]
    slowness = [regime.seconds / regime.progress for regime in seen]
    if not sum(lacking):
        lacking[-1] = 1.0
    mean = sum(part * each for part, each in zip(lacking, slowness, strict=True)) / sum(lacking)
    since = known.service_seconds - sum(regime.seconds for regime in known.regimes)
    return (1 - done) * mean - max(0.0, since)
