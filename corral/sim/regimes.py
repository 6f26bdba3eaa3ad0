"""The work of a job whose speed changes with its batch size, and what such a job reports while it runs."""

from __future__ import annotations

from collections.abc import Sequence

from corral.model.runs import WorkReport
from corral.scheduler import Regime


def reported(regimes: Sequence[Regime], part: float, at: float) -> WorkReport:
    """Return what a job says at a time, when this part of its service is over (0 to 1); O(regimes).

    Without regimes its progress is even, and it says no batch size.
    """
    if not regimes:
        return WorkReport(at, progress=part)
    progress, left = 0.0, part * sum(regime.seconds for regime in regimes)
    for regime in regimes:
        if left < regime.seconds:
            progress += regime.progress * left / regime.seconds
            return WorkReport(at, progress=min(1.0, progress), batch_size=regime.batch_size)
        left -= regime.seconds
        progress += regime.progress
    return WorkReport(at, progress=1.0, batch_size=regimes[-1].batch_size)
