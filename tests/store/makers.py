"""Builders of jobs, leases and batches that fill in the fields which a test does not set."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from corral.kernel.clock import VirtualClock
from corral.kernel.ids import JobId, TaskKey, attempt_id, job_id
from corral.model.facts import Fact
from corral.model.placement import TaskPlacement
from corral.model.records import JobSummary, TaskCounts, rfc3339
from corral.model.runs import JobRun, TaskRun
from corral.model.states import TaskState
from corral.model.store_writes import (
    AttemptWrite,
    ControlBatch,
    FactWrite,
    Holder,
    JobWrite,
    LiveJob,
    NewJob,
    TaskWrite,
)

START = 1_700_000_000.0
_numbers = itertools.count(1)
ME = Holder("here", "boot-1", 100, "5")
OTHER = Holder("here", "boot-1", 200, "9")


class Ticking(VirtualClock):
    """A clock that tests move."""

    def __init__(self) -> None:
        super().__init__(START)


def new_job(name: str = "", user: str = "ann", **fields: Any) -> NewJob:
    """A job to submit; ids grow with every call."""
    number = next(_numbers)
    at = fields.pop("created_at", START + number)
    job = job_id(int(at * 1000), number)
    name = name or f"job-{number}"
    queue, priority = fields.pop("queue", "default"), fields.pop("priority", 10)
    job_type, tags = fields.pop("job_type", "shell"), fields.pop("tags", ())
    summary = JobSummary(job, name, user, queue, priority, job_type, "waiting", rfc3339(at), tags=tags)
    return NewJob(
        id=job,
        user=user,
        name=name,
        queue=queue,
        priority=priority,
        doc=fields.pop("doc", '{"kind":"UnifiedJob"}'),
        summary=summary,
        created_at=at,
        job_type=job_type,
        tags=tags,
        **fields,
    )


def with_tasks(job: NewJob, count: int) -> NewJob:
    """The job with `count` waiting tasks."""
    summary = msgspec.structs.replace(job.summary, tasks=TaskCounts(count, count))
    return msgspec.structs.replace(job, summary=summary)


def ended(job: NewJob | LiveJob, phase: str = "succeeded", at: float = START + 100_000) -> JobWrite:
    """The write that ends a job."""
    return JobWrite(job.id, JobRun(job=job.id, ended_at=at), phase, job.summary, live=False)


def running_task(job: JobId, index: int = 0, node: str = "local/n1", devices: tuple[int, ...] = (0,)) -> TaskWrite:
    """The write that makes a task run on a node."""
    run = TaskRun("worker", index, TaskState.RUNNING, placement=TaskPlacement("worker", index, node, devices))
    return TaskWrite(job, TaskKey("worker", index), run)


def batch(epoch: int, **fields: Any) -> ControlBatch:
    """A batch of one epoch."""
    return ControlBatch(epoch=epoch, **fields)


def told(job: JobId, kind: str = "task.started", at: float = START) -> FactWrite:
    """A fact of a job."""
    return FactWrite(job, at, Fact(kind, f"{kind} happened"))


def attempted(job: JobId, task_attempt: int = 0, index: int = 0, **fields: Any) -> AttemptWrite:
    """The history of one attempt."""
    return AttemptWrite(attempt_id(job, 0, "worker", index, task_attempt), **fields)
