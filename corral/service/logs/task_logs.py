"""Find the logs of tasks, of one attempt or of all."""

from __future__ import annotations

import asyncio
from typing import Final

from corral.frameworks import splits_logs
from corral.kernel.errors import NotFound, Unavailable
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.attempts import BEFORE_ALL, AttemptChain, AttemptNumber, AttemptStep
from corral.model.records import TaskRecord
from corral.model.runs import TaskRun
from corral.model.store_writes import JobRecord
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.logs.attempt_log import TaskLog
from corral.service.logs.attempt_reference import named_attempt
from corral.service.logs.task_history import TaskHistory
from corral.spec.job import UnifiedJob
from corral.storage.log_sources import Log

_SPLIT_LOGS: Final = "CORRAL_LOGS"
"""Environment variable of a role; with the value `split` each of its tasks has two logs."""


class TaskLogs:
    """The logs of tasks."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def of_task(
        self, actor: Actor, ref: str, role: str, index: int, *, attempt: str = "", stream: str = "all"
    ) -> TaskLog | TaskHistory:
        """The log of all attempts of a task, in order, or of the named attempt.

        `attempt`: an id, a number such as `1.0`, or `latest`. Raises NotFound for a task or an attempt that the job
        does not have.
        """
        record, _ = await self._context.job_for(actor, ref, "job.logs")
        latest = await self._latest(record, role, index)
        if attempt:
            return await self.source(record, named_attempt(attempt, record, role, index, latest), stream)
        return await self._history(record, role, index, latest, stream)

    async def whole(
        self, actor: Actor, ref: str, role: str, index: int, *, attempt: str = ""
    ) -> list[TaskLog | TaskHistory]:
        """The complete output of a task's attempts, or of the named one: one log, or one for each of its two streams.

        Raises NotFound for a task or an attempt that the job does not have.
        """
        record, _ = await self._context.job_for(actor, ref, "job.logs")
        latest = await self._latest(record, role, index)
        found = named_attempt(attempt, record, role, index, latest) if attempt else latest
        streams = await self.streams(record, found, whole=not attempt)
        if attempt:
            return [await self.source(record, found, stream) for stream in streams]
        return [await self._history(record, role, index, latest, stream) for stream in streams]

    async def of_job(self, actor: Actor, ref: str, *, limit: int = 64) -> list[tuple[str, int, TaskHistory]]:
        """The logs of the job's first `limit` tasks; a task with split streams has one log for each."""
        record, _ = await self._context.job_for(actor, ref, "job.logs")
        tasks = (await self._store.job_tasks(record.id, limit=limit)).items

        async def logs_of(task: TaskRecord) -> list[tuple[str, int, TaskHistory]]:
            attempt = _current(record, task)
            streams = await self.streams(record, attempt, whole=True)
            place = task.role, task.index
            return [(*place, await self._history(record, *place, attempt, stream)) for stream in streams]

        return [log for logs in await asyncio.gather(*map(logs_of, tasks)) for log in logs]

    async def streams(self, record: JobRecord, attempt: AttemptId, *, whole: bool = False) -> tuple[str, ...]:
        """The streams of an attempt; with `whole`, those of an earlier attempt if this one has not begun."""
        if self._context.logs is None:
            return ("all",)
        found = await self._context.logs.streams(attempt, apart=_apart(record, attempt))
        key = parse_attempt_id(attempt)
        if len(found) > 1 or not whole or (key.job_attempt, key.task_attempt) == (0, 0):
            return found
        earlier = (await self._store.job_attempts(record.id, key.role, key.index, limit=2)).items
        others = [AttemptId(each.id) for each in earlier if each.id != attempt]
        return await self._context.logs.streams(others[0], apart=False) if others else found

    async def source(self, record: JobRecord, attempt: AttemptId, stream: str) -> TaskLog:
        """One stream of an attempt; access is not checked.

        Raises Unavailable on a server without logs.
        """
        if self._context.logs is None:
            raise Unavailable("no-logs", "Logs cannot be read on this server.")
        logs = self._context.logs

        async def over() -> bool:
            return await self._store.attempt_over(attempt)

        async def look() -> Log:
            return await logs.source(attempt, stream)

        return TaskLog(attempt, stream, await look(), over, look)

    async def _latest(self, record: JobRecord, role: str, index: int) -> AttemptId:
        task = await self._store.task(record.id, role, index)
        if task is not None:
            return record.run.attempt_of(task)
        attempts = (await self._store.job_attempts(record.id, role, index, limit=1)).items
        if attempts:
            return AttemptId(attempts[0].id)
        if not record.run.roles and index < _asked_for(record, role):
            return record.run.attempt_of(TaskRun(role, index))
        raise NotFound("task-not-found", f"Job {record.name} has no task {role}-{index}.")

    async def _history(self, record: JobRecord, role: str, index: int, latest: AttemptId, stream: str) -> TaskHistory:
        """The log of all attempts of a task; `latest` stands for them while the store has none."""

        async def chain(since: AttemptNumber) -> AttemptChain:
            found = await self._store.attempt_chain(record.id, role, index, since)
            if found.steps or since != BEFORE_ALL:
                return found
            key = parse_attempt_id(latest)
            return AttemptChain((AttemptStep(latest, AttemptNumber(key.job_attempt, key.task_attempt)),), found.over)

        async def open_log(attempt: AttemptId) -> TaskLog:
            return await self.source(record, attempt, stream)

        return await TaskHistory(f"{record.id}.{role}.{index}", stream, chain, open_log).load()


def _apart(record: JobRecord, attempt: AttemptId) -> bool:
    """Whether the job's document gives the attempt one log per stream; always for some job types."""
    if splits_logs(record.job_type):
        return True
    role = parse_attempt_id(attempt).role
    roles = {each.name: each for each in UnifiedJob.model_validate_json(record.doc).spec.roles}
    return role in roles and roles[role].env.get(_SPLIT_LOGS) == "split"


def _asked_for(record: JobRecord, role: str) -> int:
    """The number of tasks that the document of a job asks for, before control has processed the job."""
    document = UnifiedJob.model_validate_json(record.doc)
    return document.replicas_of(role) if role in {each.name for each in document.spec.roles} else 0


def _current(record: JobRecord, task: TaskRecord) -> AttemptId:
    return AttemptId(f"{record.id}.{record.run.attempt}.{task.role}.{task.index}.{task.attempt}")
