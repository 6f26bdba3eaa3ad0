"""Count the total time that a job has waited, including a wait in progress."""

from __future__ import annotations

from typing import Final

import msgspec

from corral.model.runs import JobRun
from corral.model.states import JobState

_WAITS: Final = frozenset(
    {JobState.CREATION_PENDING, JobState.CREATION_REQUESTED, JobState.PREPARING, JobState.ATTEMPT_COMPLETED}
)


def waits(run: JobRun) -> bool:
    """Whether a job waits for a placement, another job, its next attempt or its first task.

    Not while it is suspended, or held by a used-up budget.
    """
    return run.state in _WAITS and not run.suspended and not run.over_budget


def count_wait(before: JobRun, after: JobRun, now: float) -> JobRun:
    """`after` with the job's waits counted up to this step."""
    since = before.waits_since
    if since is None and waits(before):  # stored before waits were counted
        since = before.created_at if not before.attempt else before.ended_at
    if waits(after):
        since = now if since is None else since
        return after if after.waits_since == since else msgspec.structs.replace(after, waits_since=since)
    if since is None:
        return after
    return msgspec.structs.replace(after, waits_since=None, waited=after.waited + max(0.0, now - since))
