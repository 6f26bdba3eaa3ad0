"""Fill a store with jobs in OpenPAI's job language, as a migrated cluster has them."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

from bench.filled import SUCCEEDED, USERS
from corral.compat.openpai.language.names import NAME, PROTOCOL
from corral.compat.openpai.language.protocol import read_protocol
from corral.compat.openpai.language.translation import to_job
from corral.compat.openpai.service.list_fields import listing_of
from corral.kernel.clock import VirtualClock
from corral.kernel.ids import TaskKey, job_id
from corral.model.placement import TaskPlacement
from corral.model.records import JobSummary, TaskCounts, rfc3339
from corral.model.runs import JobRun, RoleCount, TaskRun
from corral.model.states import JobState, TaskState
from corral.model.store_writes import ControlBatch, Holder, JobWrite, NewJob, TaskWrite
from corral.spec.job import UnifiedJob
from corral.store import Store, open_store

BIG = "Big_Job"
BIG_USER = USERS[0]
CHUNK = 1000
ROLE = "task-role"
PRIORITIES = ("prod", "test", "oppo")


def fill(data: Path, *, jobs: int, big_tasks: int) -> None:
    """Store `jobs` ended jobs of OpenPAI's and one more of `big_tasks` tasks in the data folder."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    asyncio.run(_fill(data, jobs, big_tasks))


def protocol(name: str, *, instances: int = 1, priority: str = "") -> str:
    """A job file of protocol v2, about as long as users' files are."""
    extras = f"extras:\n  hivedScheduler: {{jobPriorityClass: {priority}}}\n" if priority else ""
    return (
        f"protocolVersion: 2\nname: {name}\ntype: job\nversion: 1.0\ncontributor: somebody\n"
        "description: a network is trained\n"
        "prerequisites:\n  - {type: dockerimage, name: image, uri: 'openpai/standard:python_3.6-pytorch_1.2.0-gpu'}\n"
        "parameters: {epochs: 90, rate: 0.1}\n"
        f"taskRoles:\n  Task_Role:\n    instances: {instances}\n    dockerImage: image\n"
        "    completion: {minFailedInstances: 1}\n    taskRetryCount: 0\n"
        "    resourcePerInstance: {gpu: 1, cpu: 4, memoryMB: 8192}\n"
        "    commands:\n      - git clone https://example.com/models.git\n"
        "      - python train.py --epochs <% $parameters.epochs %> --rate <% $parameters.rate %>\n"
        f"defaults: {{virtualCluster: default}}\n{extras}"
    )


async def _fill(data: Path, jobs: int, big_tasks: int) -> None:
    now = time.time()
    store = await open_store(f"sqlite:///{data / 'corral.db'}", clock=VirtualClock(now))
    try:
        lease = await store.lead(Holder("bench", "bench", os.getpid(), "0"))
        if lease is None:
            raise RuntimeError(f"{data} has a leader already")
        first = now - 365 * 86400
        step = (now - first) / (jobs + 1)
        model = UnifiedJob.from_document(_document("model"))
        for begin in range(0, jobs, CHUNK):
            numbers = range(begin, min(begin + CHUNK, jobs))
            chunk = [_job(model, number, first + number * step) for number in numbers]
            await _store_ended(store, lease.epoch, chunk)
        big = UnifiedJob.from_document(_document(BIG, instances=big_tasks))
        await _store_ended(store, lease.epoch, [_new(big, BIG, jobs, BIG_USER, now - step)])
        await store.release(lease)
    finally:
        await store.close()


def _document(name: str, *, instances: int = 1, priority: str = "") -> dict[str, object]:
    return to_job(read_protocol(protocol(name, instances=instances, priority=priority))).document


def _job(model: UnifiedJob, number: int, at: float) -> NewJob:
    """Copy the model under a new name and priority: checking a document for each job would take minutes."""
    name = f"Train_{number:06d}"
    said = json.loads(model.metadata.annotations[PROTOCOL])
    said |= {"name": name, "extras": {"hivedScheduler": {"jobPriorityClass": PRIORITIES[number % len(PRIORITIES)]}}}
    annotations = {**model.metadata.annotations, NAME: name, PROTOCOL: json.dumps(said)}
    metadata = model.metadata.model_copy(update={"name": f"train-{number:06d}", "annotations": annotations})
    return _new(model.model_copy(update={"metadata": metadata}), name, number, USERS[number % len(USERS)], at)


def _new(job: UnifiedJob, name: str, number: int, user: str, at: float) -> NewJob:
    identity, tasks = job_id(int(at * 1000), number), job.total_tasks
    listing = listing_of(job)
    tags = ("nightly",) if number % 7 == 0 else ()
    counts = TaskCounts(total=tasks, succeeded=tasks)
    ended = rfc3339(at)
    summary = JobSummary(
        identity, job.name, user, "default", 10, "openpai", "succeeded", ended, ended, ended, counts, tasks, tags=tags
    )
    return NewJob(
        identity,
        user,
        job.name,
        "default",
        10,
        job.to_json(),
        summary,
        at,
        job_type="openpai",
        tags=tags,
        unique_name="none",
        submitted_as=None if listing is None else listing.stored(),
    )


async def _store_ended(store: Store, epoch: int, jobs: list[NewJob]) -> None:
    accepted = await asyncio.gather(*(store.submit(job) for job in jobs))
    tasks = tuple(task for job in jobs for task in _tasks(job))
    writes = tuple(_ended(job) for job in jobs)
    await store.commit(ControlBatch(epoch, cursor=max(one.seq for one in accepted), jobs=writes, tasks=tasks))


def _ended(job: NewJob) -> JobWrite:
    count = job.summary.tasks.total
    run = JobRun(
        job.id,
        JobState.COMPLETED,
        roles={ROLE: RoleCount(count, total=count, succeeded=count)},
        created_at=job.created_at,
        started_at=job.created_at,
        ended_at=job.created_at,
        completion=SUCCEEDED,
    )
    return JobWrite(job.id, run, "succeeded", job.summary, live=False)


def _tasks(job: NewJob) -> list[TaskWrite]:
    at = job.created_at
    writes = []
    for index in range(job.summary.tasks.total):
        run = TaskRun(
            ROLE,
            index,
            TaskState.COMPLETED,
            placement=TaskPlacement(ROLE, index, f"local/node{index // 8}", (index % 8,)),
            host="10.0.0.1",
            ports={"ssh": (15001,), "http": (15002,)},
            created_at=at,
            started_at=at,
            ended_at=at,
            completion=SUCCEEDED,
        )
        writes.append(TaskWrite(job.id, TaskKey(ROLE, index), run))
    return writes
