"""Answer when a waiting job is likely to start and which change would start it now, in bounded work."""

from __future__ import annotations

from corral.kernel.ids import JobId
from corral.model.plan import Reasons
from corral.model.start_estimates import Outlook
from corral.scheduler.explain.question import GracePeriods, Said, as_it_is, at_once
from corral.scheduler.explain.smallest_change import smallest_changes
from corral.scheduler.explain.start_estimate import estimate
from corral.scheduler.planners.planner import Planner


def outlook(
    planner: Planner,
    job: JobId,
    reasons: Reasons,
    now: float,
    grace_periods: GracePeriods = at_once,
    said: Said = as_it_is,
) -> Outlook | None:
    """Return the estimated start of a waiting job and the smallest changes that would start it now.

    None if it does not wait. A job that starts now needs no change, so none is reported. `reasons` are the current
    result of `explain`. Nothing is changed.
    """
    found = estimate(planner, job, reasons, now, grace_periods)
    if found is None:
        return None
    if found.at is not None and found.at <= now:
        return Outlook(found)
    return Outlook(found, smallest_changes(planner.cluster, planner.queue, planner.policy, job, reasons, now, said))
