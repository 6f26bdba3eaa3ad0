"""Fill a store with a year's worth of ended jobs, for the API benchmarks."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

from corral.kernel.clock import VirtualClock
from corral.kernel.ids import TaskKey, job_id
from corral.model.outcome import Completion, ExitClass
from corral.model.placement import TaskPlacement
from corral.model.records import JobSummary, TaskCounts, rfc3339
from corral.model.runs import JobRun, RoleCount, TaskRun
from corral.model.states import JobState, TaskState
from corral.model.store_writes import ControlBatch, Holder, JobWrite, NewJob, TaskWrite
from corral.spec.job_reader import load_job
from corral.store import Store, open_store

USERS = tuple(f"user{number}" for number in range(40))
QUEUES = ("default", "vision", "speech", "search")
TYPES = ("pytorch", "tensorflow", "mpi", "shell")
CHUNK = 1000
BIG = "big"
SUCCEEDED = Completion(0, "Succeeded", ExitClass.SUCCEEDED)


def fill(data: Path, *, jobs: int, big_tasks: int) -> str:
    """Store `jobs` ended jobs and one of `big_tasks` tasks in the data folder; returns the id of the big one."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    return asyncio.run(_fill(data, jobs, big_tasks))


async def _fill(data: Path, jobs: int, big_tasks: int) -> str:
    now = time.time()
    store = await open_store(f"sqlite:///{data / 'corral.db'}", clock=VirtualClock(now))
    try:
        lease = await store.lead(Holder("bench", "bench", os.getpid(), "0"))
        if lease is None:
            raise RuntimeError(f"{data} has a leader already")
        first = now - 365 * 86400
        step = (now - first) / (jobs + 1)
        for begin in range(0, jobs, CHUNK):
            chunk = [_job(number, first + number * step, 1) for number in range(begin, min(begin + CHUNK, jobs))]
            await _store_ended(store, lease.epoch, chunk)
        big = _job(jobs, now - step, big_tasks, name=BIG)
        await _store_ended(store, lease.epoch, [big])
        await store.release(lease)
        return str(big.id)
    finally:
        await store.close()


async def _store_ended(store: Store, epoch: int, jobs: list[NewJob]) -> None:
    accepted = await asyncio.gather(*(store.submit(job) for job in jobs))
    tasks = tuple(task for job in jobs for task in _tasks(job))
    writes = tuple(_ended(job) for job in jobs)
    await store.commit(ControlBatch(epoch, cursor=max(one.seq for one in accepted), jobs=writes, tasks=tasks))


def _job(number: int, at: float, replicas: int, name: str = "") -> NewJob:
    name = name or f"train-{number:06d}"
    job_type, queue = TYPES[number % len(TYPES)], QUEUES[number % len(QUEUES)]
    user = USERS[number % len(USERS)]
    document = _document(name, job_type, queue, replicas)
    identity = job_id(int(at * 1000), number)
    tags = ("nightly",) if number % 7 == 0 else ()
    counts = TaskCounts(total=replicas, succeeded=replicas)
    summary = JobSummary(
        identity, name, user, queue, 10, job_type, "succeeded", rfc3339(at), rfc3339(at), rfc3339(at), counts, tags=tags
    )
    return NewJob(
        identity, user, name, queue, 10, document, summary, at, job_type=job_type, tags=tags, unique_name="none"
    )


def _document(name: str, job_type: str, queue: str, replicas: int) -> str:
    short = {
        "name": name,
        "framework": job_type,
        "queue": queue,
        "roles": {
            "worker": {"replicas": replicas, "command": "python train.py --epochs 90", "resources": {"devices": 1}}
        },
    }
    return load_job(json.dumps(short)).to_json()


def _replicas(job: NewJob) -> int:
    return job.summary.tasks.total


def _ended(job: NewJob) -> JobWrite:
    count = _replicas(job)
    run = JobRun(
        job.id,
        JobState.COMPLETED,
        roles={"worker": RoleCount(count, total=count, succeeded=count)},
        created_at=job.created_at,
        started_at=job.created_at,
        ended_at=job.created_at,
        completion=SUCCEEDED,
    )
    return JobWrite(job.id, run, "succeeded", job.summary, live=False)


def _tasks(job: NewJob) -> list[TaskWrite]:
    writes = []
    for index in range(_replicas(job)):
        place = TaskPlacement("worker", index, f"local/node{index // 8}", (index % 8,))
        run = TaskRun(
            "worker",
            index,
            TaskState.COMPLETED,
            placement=place,
            created_at=job.created_at,
            started_at=job.created_at,
            ended_at=job.created_at,
            completion=SUCCEEDED,
        )
        writes.append(TaskWrite(job.id, TaskKey("worker", index), run))
    return writes
