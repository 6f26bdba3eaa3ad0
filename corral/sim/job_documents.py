"""Job documents of trace jobs, made from one parsed document for each kind of job."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import msgspec

from corral.control.core.new_jobs import stored_job
from corral.kernel.ids import JobId
from corral.model.store_writes import NewJob
from corral.sim.trace import WHOLE, TraceJob
from corral.spec.job_reader import load_job


def gang_of(devices: int, per_node: int) -> tuple[int, int]:
    """Return the fewest equal tasks that each fit a node, and the devices of one."""
    if not devices:
        return 1, 0
    tasks = next(count for count in range(1, devices + 1) if devices % count == 0 and devices // count <= per_node)
    return tasks, devices // tasks


def new_job(job: TraceJob, identity: JobId, at: float, per_node: int, longest: int, most: int = 0) -> NewJob:
    """Return the job as a server stores it; `longest` is its `maxDuration` in seconds (0: it declares none).

    With `most` it is elastic: it runs with 1 to so many tasks of one device.

    Raises SpecError if a job file could not say so.
    """
    tasks, each = (most, 1) if most else gang_of(job.devices, per_node)
    part = 0 if job.part == WHOLE else job.part
    ask = (part, job.cpu_millis // tasks, job.memory_bytes // tasks)
    parts = _document(tasks, each, job.queue, job.priority, *ask, elastic=bool(most))
    document = {"metadata": {**parts["metadata"], "name": job.name}, "spec": dict(parts["spec"])}
    if longest:
        document["spec"]["maxDurationSeconds"] = longest
    if job.speeds:
        document["spec"]["speeds"] = {model: round(speed, 9) for model, speed in job.speeds}
    text = msgspec.json.encode({**parts, **document}).decode()
    return stored_job(identity, at, text, name=job.name, user=job.user, queue=job.queue, priority=job.priority)


@lru_cache(4096)
def _document(
    tasks: int,
    each: int,
    queue: str,
    priority: int,
    part: int,
    cpu_millis: int,
    memory_bytes: int,
    *,
    elastic: bool = False,
) -> dict[str, Any]:
    """Return the parts of a job's document; `part` is in thousandths of a device, 0 for whole ones."""
    devices = {"count": 1, "share": {"computePercent": part // 10}} if part else each
    needs: dict[str, Any] = {"cpu": f"{cpu_millis}m" if cpu_millis else 1, "devices": devices}
    if memory_bytes:
        needs["memory"] = f"{-(-memory_bytes // 1024)}Ki"
    replicas: Any = {"min": 1, "max": tasks} if elastic else tasks
    role = {"replicas": replicas, "resources": needs, "command": ["true"]}
    short = {"name": "job", "framework": "shell", "queue": queue, "priority": priority, "roles": {"worker": role}}
    parts: dict[str, Any] = json.loads(load_job(json.dumps(short)).to_json())
    return parts
