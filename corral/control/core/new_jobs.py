"""Jobs as the service stores them, for those who play a core without a service."""

from __future__ import annotations

from corral.kernel.ids import JobId
from corral.model.records import JobSummary, rfc3339
from corral.model.store_writes import NewJob


def stored_job(
    identity: JobId, at: float, text: str, *, name: str, user: str, queue: str, priority: int, job_type: str = "shell",
    hold: str = "", tags: tuple[str, ...] = (),
) -> NewJob:  # fmt: skip
    """The job as the service stores it, from its canonical document `text` and what that says."""
    summary = JobSummary(
        id=identity,
        name=name,
        user=user,
        queue=queue,
        priority=priority,
        job_type=job_type,
        state="waiting",
        created_at=rfc3339(at),
        tags=tags,
    )
    return NewJob(
        id=identity,
        user=user,
        name=name,
        queue=queue,
        priority=priority,
        doc=text,
        summary=summary,
        created_at=at,
        hold=hold,
        tags=tags,
    )
