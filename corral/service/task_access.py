"""Access to the inside of tasks: peers, reports, checkpoints, logs, exec, ports and code."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, InvalidInput, NotFound, TooLarge, Unavailable
from corral.kernel.ids import AttemptId, JobId, attempt_id, parse_attempt_id
from corral.kernel.tokens import derived_secret, job_secret
from corral.model.attempts import BEFORE_ALL, AttemptChain, AttemptNumber, AttemptStep
from corral.model.facts import Fact
from corral.model.records import TaskRecord
from corral.model.runs import TaskRun
from corral.model.states import TaskState
from corral.model.store_writes import FactWrite, JobRecord
from corral.model.views import PeersView, PortsView, Uploaded
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.base import ServiceBase, job_resource
from corral.service.jobs.job_detail import placement_record
from corral.service.logs.task_log import TaskHistory
from corral.spec.job import UnifiedJob
from corral.spec.openpai.names import JOB_TYPE as OPENPAI
from corral.storage.code_archives import BLOB_SCHEME
from corral.storage.log_sources import Log
from corral.store.cluster_views import too_much_code

_EVERY_TASK: Final = 20_000
_REPORT_BYTES: Final = 16 * 1024
REPORTS_OF_A_JOB: Final = 1024 * 1024
"""Most characters that the reports of one job may take in the store."""
_MESSAGE: Final = 1000
_LOST_SECONDS: Final = 120.0
"""Seconds after an attempt's end for which readers wait for the rest of its log."""
_SPLIT_LOGS: Final = "CORRAL_LOGS"
"""Environment variable of a role; with the value `split` each of its tasks has two logs."""
_NUMBER: Final = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)
"""A task's attempt, written as the job's attempt and the task's own (`1.0`)."""
_LOOK_SECONDS: Final = 1.0
"""Longest wait, in seconds, for bytes of a missing log before it is looked up again."""


class TaskAccess(ServiceBase):
    """Peers, reports, logs, exec, ports and code of tasks."""

    async def peers(self, actor: Actor, *, attempt: str = "") -> PeersView:
        """The started tasks of the token's job, and whether all its placed tasks have started.

        Raises Conflict `attempt-over` for a task of an earlier attempt of the job.
        """
        record = await self._own(actor, "runtime.peers")
        if attempt and _parsed(attempt, record.id).job_attempt != record.run.attempt:
            raise Conflict("attempt-over", "This attempt of the job is over; its tasks have no peers any more.")
        tasks = (await self.store.job_tasks(record.id, limit=_EVERY_TASK)).items
        placed = [task for task in tasks if task.node]
        started = [task for task in placed if task.started_at is not None and task.host]
        complete = bool(placed) and len(started) == len(placed)
        return PeersView(record.run.attempt, complete, tuple(placement_record(task) for task in started))

    async def report(self, actor: Actor, body: dict[str, Any]) -> None:
        """Store a report from the runtime of a task: `{"attempt", "kind", "message", …}`.

        Raises InvalidInput when it has more than 16 KiB or names a malformed attempt, NotFound for another job's
        attempt, Conflict `reports-used-up` when the job's reports reach their limit.
        """
        record = await self._own(actor, "runtime.report")
        if len(msgspec.json.encode(body)) > _REPORT_BYTES:
            raise InvalidInput("report-too-long", f"A report has at most {_REPORT_BYTES} bytes.")
        attempt = str(body.get("attempt", ""))
        key = _parsed(attempt, record.id) if attempt else None
        kind, message = str(body.get("kind", "report"))[:50], str(body.get("message", ""))[:_MESSAGE]
        fact = Fact(
            f"runtime.{kind}",
            message or f"the runtime reported {kind}",
            role=key.role if key else "",
            index=key.index if key else -1,
            attempt=attempt,
            data=body,
        )
        write = FactWrite(JobId(record.id), self.clock.now(), fact, actor="runtime")
        if not await self.store.report(write, REPORTS_OF_A_JOB):
            raise Conflict("reports-used-up", "The job has stored as many reports as it may; print to its log instead.")

    async def checkpointed(self, actor: Actor, *, attempt: str, age_seconds: float) -> None:
        """Record that a task saved a checkpoint `age_seconds` ago; a repetition soon after changes nothing.

        Raises Conflict `attempt-over` for a task of an earlier attempt of the job.
        """
        record = await self._own(actor, "runtime.checkpoint")
        if _parsed(attempt, record.id).job_attempt != record.run.attempt:
            raise Conflict("attempt-over", "This attempt of the job is over; what it saved is no matter any more.")
        begun = record.run.started_at or record.created_at
        await self.store.checkpointed(AttemptId(attempt), max(begun, self.clock.now() - age_seconds))

    async def _own(self, actor: Actor, action: str) -> JobRecord:
        record = await self.store.find_job(actor.job) if actor.job else None
        await self.check(actor, action, Resource("job", record.id if record else actor.job))
        if record is None:
            raise NotFound("job-not-found", "The job of this token is gone.")
        return record

    async def task_log(
        self, actor: Actor, ref: str, role: str, index: int, *, attempt: str = "", stream: str = "all"
    ) -> TaskLog | TaskHistory:
        """The log of all attempts of a task, in order, or of the named attempt.

        `attempt`: an id, a number such as `1.0`, or `latest`. Raises NotFound for a task or an attempt that the job
        does not have.
        """
        record, _ = await self.job_for(actor, ref, "job.logs")
        latest = await self._latest(record, role, index)
        if attempt:
            return await self._source(record, _named(attempt, record, role, index, latest), stream)
        return await self._history(record, role, index, latest, stream)

    async def whole_log(
        self, actor: Actor, ref: str, role: str, index: int, *, attempt: str = ""
    ) -> list[TaskLog | TaskHistory]:
        """The complete output of a task's attempts, or of the named one: one log, or one for each of its two streams.

        Raises NotFound for a task or an attempt that the job does not have.
        """
        record, _ = await self.job_for(actor, ref, "job.logs")
        latest = await self._latest(record, role, index)
        found = _named(attempt, record, role, index, latest) if attempt else latest
        streams = await self._streams(record, found, whole=not attempt)
        if attempt:
            return [await self._source(record, found, stream) for stream in streams]
        return [await self._history(record, role, index, latest, stream) for stream in streams]

    async def job_logs(self, actor: Actor, ref: str, *, limit: int = 64) -> list[tuple[str, int, TaskHistory]]:
        """The logs of the job's first `limit` tasks; a task with split streams has one log for each."""
        record, _ = await self.job_for(actor, ref, "job.logs")
        tasks = (await self.store.job_tasks(record.id, limit=limit)).items

        async def logs_of(task: TaskRecord) -> list[tuple[str, int, TaskHistory]]:
            attempt = _current(record, task)
            streams = await self._streams(record, attempt, whole=True)
            place = task.role, task.index
            return [(*place, await self._history(record, *place, attempt, stream)) for stream in streams]

        return [log for logs in await asyncio.gather(*map(logs_of, tasks)) for log in logs]

    async def _latest(self, record: JobRecord, role: str, index: int) -> AttemptId:
        task = await self.store.task(record.id, role, index)
        if task is not None:
            return record.run.attempt_of(task)
        attempts = (await self.store.job_attempts(record.id, role, index, limit=1)).items
        if attempts:
            return AttemptId(attempts[0].id)
        if not record.run.roles and index < _asked_for(record, role):
            return record.run.attempt_of(TaskRun(role, index))
        raise NotFound("task-not-found", f"Job {record.name} has no task {role}-{index}.")

    async def _streams(self, record: JobRecord, attempt: AttemptId, *, whole: bool = False) -> tuple[str, ...]:
        """The streams of an attempt; with `whole`, those of an earlier attempt if this one has not begun."""
        if self.logs is None:
            return ("all",)
        found = await self.logs.streams(attempt, apart=_apart(record, attempt))
        key = parse_attempt_id(attempt)
        if len(found) > 1 or not whole or (key.job_attempt, key.task_attempt) == (0, 0):
            return found
        earlier = (await self.store.job_attempts(record.id, key.role, key.index, limit=2)).items
        others = [AttemptId(each.id) for each in earlier if each.id != attempt]
        return await self.logs.streams(others[0], apart=False) if others else found

    async def _history(self, record: JobRecord, role: str, index: int, latest: AttemptId, stream: str) -> TaskHistory:
        """The log of all attempts of a task; `latest` stands for them while the store has none."""

        async def chain(since: AttemptNumber) -> AttemptChain:
            found = await self.store.attempt_chain(record.id, role, index, since)
            if found.steps or since != BEFORE_ALL:
                return found
            key = parse_attempt_id(latest)
            return AttemptChain((AttemptStep(latest, AttemptNumber(key.job_attempt, key.task_attempt)),), found.over)

        async def open_log(attempt: AttemptId) -> TaskLog:
            return await self._source(record, attempt, stream)

        return await TaskHistory(f"{record.id}.{role}.{index}", stream, chain, open_log).load()

    async def _source(self, record: JobRecord, attempt: AttemptId, stream: str) -> TaskLog:
        if self.logs is None:
            raise Unavailable("no-logs", "Logs cannot be read on this server.")
        logs = self.logs

        async def over() -> bool:
            return await self.store.attempt_over(attempt)

        async def look() -> Log:
            return await logs.source(attempt, stream)

        return TaskLog(attempt, stream, await look(), over, look)

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
        token = derived_secret(job_secret(self.key, JobId(record.id)), "notebook")
        return PortsView(task.ports, f"/proxy/{record.id}/{role}-{index}/?token={token}")

    async def _entered(self, actor: Actor, ref: str, role: str, index: int, **said: str) -> tuple[JobRecord, TaskRun]:
        record, decision = await self.job_for(actor, ref, "job.exec")
        task = await self.store.task(record.id, role, index)
        if task is None:
            raise NotFound("task-not-found", f"Job {record.name} has no task {role}-{index}.")
        if task.state is not TaskState.RUNNING:
            raise Conflict("task-not-running", f"Task {role}-{index} is not running ({task.state}).")
        await self.note(actor, "job.exec", job_resource(record), decision, task=f"{role}-{index}", **said)
        return record, task

    async def put_code(
        self, actor: Actor, chunks: AsyncIterator[bytes], *, declared: int | None = None, digest: str = ""
    ) -> Uploaded:
        """Store an uploaded archive; `declared` and `digest` are its length and SHA-256 as stated by the caller.

        Raises TooLarge before reading when the account would exceed its quota, unless it keeps this archive already.
        Raises TooLarge, InvalidInput and Unavailable as the blob store does, Unavailable when there is none.
        """
        decision = await self.check(actor, "code.put", Resource("code", owner=actor.user))
        if self.blobs is None:
            raise Unavailable("no-blob-store", "Code cannot be stored on this server.")
        most = self.allowance.code_bytes
        if most and declared:
            kept = await self.store.code_bytes(actor.user)
            if kept + declared > most and not await self._keeps(actor, digest, declared):
                raise too_much_code(actor.user, kept, declared, most)
        digest, size = await self.blobs.put(chunks, self.code_limit, self.workers, digest)
        try:
            await self.store.put_blob(digest, actor.user, size, self.clock.now(), most=most)
        except TooLarge:
            if not await self.store.has_blob(digest):  # nothing else would ever remove it
                await self.blobs.remove(digest)
            raise
        await self.note(actor, "code.put", Resource("code", digest, owner=actor.user), decision, size=size)
        return Uploaded(digest, size)

    async def _keeps(self, actor: Actor, digest: str, size: int) -> bool:
        """Whether the actor keeps an archive of this SHA-256 and length."""
        return bool(digest) and await self.store.use_blob(digest, actor.user, self.clock.now()) == size

    async def own_code(self, actor: Actor) -> Path:
        """The archive file that the token's job starts from.

        Raises NotFound when the job has no code or the archive is gone, Unavailable when it cannot be fetched now.
        """
        record = await self._own(actor, "runtime.code")
        uri = UnifiedJob.model_validate_json(record.doc).spec.code.uri
        if self.blobs is None or not uri.startswith(BLOB_SCHEME):
            raise NotFound("no-such-code", "This job was submitted without code.")
        return await self.blobs.fetch(uri.removeprefix(BLOB_SCHEME))

    async def code_exists(self, actor: Actor, digest: str) -> int | None:
        """The size of an archive that the actor has uploaded; None when there is none, or when it is gone."""
        await self.check(actor, "code.read", Resource("code", digest, owner=actor.user))
        if self.blobs is None or await self.store.use_blob(digest, actor.user, self.clock.now()) is None:
            return None
        return await self.blobs.size(digest)


class TaskLog:
    """The log of one attempt; if nothing is ever written, it ends with the attempt.

    A missing log is looked up again, because only an existing one shows whether the attempt splits its streams.
    """

    def __init__(
        self,
        attempt: AttemptId,
        stream: str,
        file: Log,
        over: Callable[[], Awaitable[bool]],
        look: Callable[[], Awaitable[Log]] | None = None,
    ) -> None:
        self.attempt = attempt
        self.stream = stream
        self._over = over
        self._look = look
        self._over_since: float | None = None
        self._take(file)

    def _take(self, file: Log) -> None:
        self._file = file
        self.size, self.read, self.tail, self.close = file.size, file.read, file.tail, file.close

    async def wait(self, offset: int, seconds: float) -> bool:
        """Wait at most `seconds` for bytes beyond `offset`; False if there will never be any."""
        if not self._file.exists():
            if await self._over():
                return self._file.exists()
            if self._look is not None:
                await self._file.close()
                self._take(await self._look())
            seconds = min(seconds, _LOOK_SECONDS)
        if not await self._file.wait(offset, seconds):
            return False
        return not await self._lost(offset)

    async def _lost(self, offset: int) -> bool:
        """Whether the rest will never come: the attempt ended 2 minutes ago, and its log was never completed.

        Its machine is gone, or the disk could not store the end.
        """
        if await self._file.size() > offset or not await self._over():
            self._over_since = None
            return False
        now = asyncio.get_running_loop().time()
        self._over_since = self._over_since or now
        return now - self._over_since >= _LOST_SECONDS


def _parsed(attempt: str, job: str) -> Any:
    try:
        key = parse_attempt_id(attempt)
    except ValueError:
        message = f"{attempt[:100]!r} is no attempt; write its numbers, such as 1.0, its id, or latest."
        raise InvalidInput("bad-attempt", message) from None
    if key.job != job:
        raise NotFound("attempt-not-found", "The attempt is another job's.")
    return key


def _named(attempt: str, record: JobRecord, role: str, index: int, latest: AttemptId) -> AttemptId:
    """Resolve an attempt given by id, by its two numbers (`1.0`), or as `latest`.

    Raises NotFound for an attempt of another task or one that does not exist, InvalidInput for anything else.
    """
    if attempt == "latest":
        return latest
    known = parse_attempt_id(latest)
    if match := _NUMBER.fullmatch(attempt):
        asked = int(match[1]), int(match[2])
    else:
        key = _parsed(attempt, record.id)
        if (key.role, key.index) != (role, index):
            raise NotFound("attempt-not-found", f"Task {role}-{index} has no attempt {attempt[:100]}.")
        asked = key.job_attempt, key.task_attempt
    if asked > (known.job_attempt, known.task_attempt):
        message = f"Task {role}-{index} has no attempt {attempt[:100]}; `corral attempts` lists them."
        raise NotFound("attempt-not-found", message)
    return attempt_id(JobId(record.id), asked[0], role, index, asked[1])


def _apart(record: JobRecord, attempt: AttemptId) -> bool:
    """Whether the job's document gives the attempt one log per stream; always for OpenPAI's jobs."""
    if record.job_type == OPENPAI:
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
