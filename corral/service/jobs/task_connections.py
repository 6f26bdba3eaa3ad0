"""Enter running tasks: terminals, and connections to ports."""

from __future__ import annotations

import asyncio

from corral.frameworks.notebook import base_url
from corral.kernel.errors import Conflict, NotFound
from corral.kernel.ids import AttemptId, JobId
from corral.kernel.tokens import derived_secret, job_secret
from corral.model.runs import TaskRun
from corral.model.states import TaskState
from corral.model.store_writes import JobRecord
from corral.model.views import PortsView
from corral.service.access.job_access import job_resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.spec.job import UnifiedJob
from corral.store import Store

_START_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.3, *(0.5,) * 9)
"""The pauses between looks at a task that is just starting: 5 s in all."""


class TaskConnections:
    """Terminals in running tasks, and connections to their ports."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def open_exec(self, actor: Actor, ref: str, role: str, index: int) -> AttemptId:
        """The running attempt in which to open a terminal.

        Raises Conflict `task-not-running`, NotFound.
        """
        record, task = await self._entered(actor, ref, role, index)
        return record.run.attempt_of(task)

    async def open_port(self, actor: Actor, ref: str, role: str, index: int, port: str) -> tuple[AttemptId, int]:
        """The running attempt, and the number of the named port, for a connection.

        Raises Conflict `task-not-running`, NotFound for a port that the task was not given.
        """
        record, task = await self._entered(actor, ref, role, index, port=port)
        numbers = {str(number): number for each in task.ports.values() for number in each}
        named = task.ports.get(port)
        number = named[0] if named else numbers.get(port)
        if number is None:
            given = ", ".join(sorted(task.ports)) or "none"
            raise NotFound("no-such-port", f"Task {role}-{index} was not given a port {port[:100]} (it has: {given}).")
        return record.run.attempt_of(task), number

    async def ports(self, actor: Actor, ref: str, role: str, index: int) -> PortsView:
        """The ports of a running task, and the proxied address of a notebook.

        Raises Conflict `task-not-running`, NotFound.
        """
        record, task = await self._entered(actor, ref, role, index)
        if UnifiedJob.model_validate_json(record.doc).spec.job_type != "notebook":
            return PortsView(task.ports)
        token = derived_secret(job_secret(self._context.key, JobId(record.id)), "notebook")
        return PortsView(task.ports, f"{base_url(record.id, f'{role}-{index}')}?token={token}")

    async def _entered(self, actor: Actor, ref: str, role: str, index: int, **said: str) -> tuple[JobRecord, TaskRun]:
        record, decision = await self._context.job_for(actor, ref, "job.exec")
        record, task = await started_task(self._store, record, role, index)
        await self._context.note(actor, "job.exec", job_resource(record), decision, task=f"{role}-{index}", **said)
        return record, task


async def started_task(store: Store, record: JobRecord, role: str, index: int) -> tuple[JobRecord, TaskRun]:
    """Wait up to 5 s for a task that is just starting; returns its job as it is then, and the running task.

    A task's output can be read before control has stored that the task runs, so whoever follows a log comes too early.

    Raises NotFound `task-not-found`, Conflict `task-not-running`.
    """
    task = await store.task(record.id, role, index)
    for pause in _START_PAUSES:
        if not _is_starting(record, task):
            break
        await asyncio.sleep(pause)
        record = await store.find_job(record.id) or record
        task = await store.task(record.id, role, index)
    return record, _running(record, task, role, index)


def _is_starting(record: JobRecord, task: TaskRun | None) -> bool:
    """Whether a task may run already although it is not stored: it was placed, or control has not read its job."""
    if task is None:
        return record.live and not record.run.roles
    return task.state is TaskState.PREPARING


async def running_task(store: Store, record: JobRecord, role: str, index: int) -> TaskRun:
    """The running task of a job.

    Raises NotFound `task-not-found`, Conflict `task-not-running`.
    """
    return _running(record, await store.task(record.id, role, index), role, index)


def _running(record: JobRecord, task: TaskRun | None, role: str, index: int) -> TaskRun:
    if task is None:
        raise NotFound("task-not-found", f"Job {record.name} has no task {role}-{index}.")
    if task.state is not TaskState.RUNNING:
        raise Conflict("task-not-running", f"Task {role}-{index} is not running ({task.state}).")
    return task
