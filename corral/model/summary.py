"""Why: the line that a job has in lists is made from counters only, so it costs the same for one task and for 10,000."""

from __future__ import annotations

import msgspec

from corral.model.records import JobSummary, TaskCounts, WaitingView, exit_view, rfc3339_or_none
from corral.model.runs import JobRun


def summarize(before: JobSummary, run: JobRun, phase: str, waiting: WaitingView | None = None) -> JobSummary:
    """The line of a job whose run is now `run`; what a run does not know is taken from the line `before`."""
    roles = run.roles.values()
    total = sum(max(role.target, role.total) for role in roles)
    running = sum(role.running for role in roles)
    succeeded = sum(role.succeeded for role in roles)
    failed = sum(role.failed for role in roles)
    counts = TaskCounts(total, max(0, total - running - succeeded - failed), running, succeeded, failed)
    return msgspec.structs.replace(
        before,
        state=phase,
        started_at=rfc3339_or_none(run.started_at),
        ended_at=rfc3339_or_none(run.ended_at),
        tasks=counts if roles else before.tasks,
        retries=run.retries.total + run.task_retries,
        task_retries=run.task_retries,
        exit=exit_view(run.completion),
        waiting=waiting,
    )
