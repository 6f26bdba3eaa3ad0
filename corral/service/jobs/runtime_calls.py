"""What the runtime inside a task asks and reports: peers, reports, checkpoints, progress and code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.kernel.ids import AttemptId, JobId, attempt_id
from corral.model.facts import Fact
from corral.model.metrics.told_scalars import ToldScalar, ToldScalars
from corral.model.runs import TaskStep, WorkReport
from corral.model.store_writes import FactWrite, JobRecord
from corral.model.views import PeersView
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.gang_reports import GangReports
from corral.service.jobs.job_detail import placement_record
from corral.service.logs.attempt_reference import parsed_attempt
from corral.spec.job import UnifiedJob
from corral.storage.code_archives import BLOB_SCHEME

_EVERY_TASK: Final = 20_000
_REPORT_BYTES: Final = 16 * 1024
REPORTS_OF_A_JOB: Final = 1024 * 1024
"""Most characters that the reports of one job may take in the store."""
_MESSAGE: Final = 1000
CountCall = Callable[[JobId, int, AttemptId], None]
"""Counts a call of an attempt of a job with so many tasks, or refuses it."""


class RuntimeCalls:
    """The calls of the runtime inside a task, with the token of its job."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._gangs = GangReports()

    async def peers(self, actor: Actor, *, attempt: str = "") -> PeersView:
        """The started tasks of the token's job, and whether all its placed tasks have started.

        Raises Conflict `attempt-over` for a task of an earlier attempt of the job.
        """
        record = await self._own(actor, "runtime.peers")
        if attempt and parsed_attempt(attempt, record.id).job_attempt != record.run.attempt:
            raise Conflict("attempt-over", "This attempt of the job is over; its tasks have no peers any more.")
        tasks = (await self._store.job_tasks(record.id, limit=_EVERY_TASK)).items
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
        key = parsed_attempt(attempt, record.id) if attempt else None
        kind, message = str(body.get("kind", "report"))[:50], str(body.get("message", ""))[:_MESSAGE]
        fact = Fact(
            f"runtime.{kind}",
            message or f"the runtime reported {kind}",
            role=key.role if key else "",
            index=key.index if key else -1,
            attempt=attempt,
            data=body,
        )
        write = FactWrite(JobId(record.id), self._clock.now(), fact, actor="runtime")
        if not await self._store.report(write, REPORTS_OF_A_JOB):
            raise Conflict("reports-used-up", "The job has stored as many reports as it may; print to its log instead.")

    async def checkpointed(self, actor: Actor, *, attempt: str, age_seconds: float) -> None:
        """Record that a task saved a checkpoint `age_seconds` ago; a repetition soon after changes nothing.

        Raises Conflict `attempt-over` for a task of an earlier attempt of the job.
        """
        record = await self._own(actor, "runtime.checkpoint")
        if parsed_attempt(attempt, record.id).job_attempt != record.run.attempt:
            raise Conflict("attempt-over", "This attempt of the job is over; its checkpoints no longer count.")
        begun = record.run.started_at or record.created_at
        await self._store.checkpointed(AttemptId(attempt), max(begun, self._clock.now() - age_seconds))

    async def work_reported(self, actor: Actor, *, attempt: str, report: WorkReport) -> None:
        """Record what a task's program says of its work; a repetition soon after changes nothing.

        Raises Conflict `attempt-over` for a task of an earlier attempt of the job.
        """
        record = await self._own(actor, "runtime.progress")
        key = parsed_attempt(attempt, record.id)
        if key.job_attempt != record.run.attempt:
            raise Conflict("attempt-over", "This attempt of the job is over; its reports no longer count.")
        begun = record.run.started_at or record.created_at
        at, others = max(begun, report.at), self._gangs.others(key)
        report = msgspec.structs.replace(report, at=at)
        if await self._store.work_reported(AttemptId(attempt), report, others=others, told_at=self._clock.now()):
            self._gangs.told(key, others)
        elif report.step is not None:
            step = TaskStep(key.role, key.index, report.step, at, report.steps, report.waited)
            self._gangs.note(key, step)

    async def scalars_told(
        self,
        actor: Actor,
        *,
        attempt: str,
        scalars: Sequence[ToldScalar],
        count: CountCall = lambda job, tasks, own: None,
    ) -> None:
        """Give control scalars of a task's event files, which become curves of its job.

        `count` is called once the caller is known, with the job, the number of its tasks, and the attempt's one id.

        Raises Conflict `attempt-over` for what is no attempt of a task that runs, InvalidInput `bad-name` for a run or
        tag with characters that are not printable.
        """
        record = await self._own(actor, "runtime.scalars")
        key = parsed_attempt(attempt, record.id)
        own = attempt_id(*key)
        count(JobId(record.id), max(1, sum(role.total for role in record.run.roles.values())), own)
        if key.job_attempt != record.run.attempt:
            raise Conflict("attempt-over", "This attempt of the job is over; its scalars no longer count.")
        if not all(each.run.isprintable() and each.tag.isprintable() for each in scalars):
            raise InvalidInput("bad-name", "A run or a tag has a character that cannot be printed.")
        told = ToldScalars(own, list(scalars))
        await self._context.control.request("/scalars", msgspec.to_builtins(told))

    async def code(self, actor: Actor) -> Path:
        """The archive file that the token's job starts from.

        Raises NotFound when the job has no code or the archive is gone, Unavailable when it cannot be fetched now.
        """
        record = await self._own(actor, "runtime.code")
        uri = UnifiedJob.model_validate_json(record.doc).spec.code.uri
        if self._context.blobs is None or not uri.startswith(BLOB_SCHEME):
            raise NotFound("no-such-code", "This job was submitted without code.")
        return await self._context.blobs.fetch(uri.removeprefix(BLOB_SCHEME))

    async def _own(self, actor: Actor, action: str) -> JobRecord:
        return await own_job(self._context, actor, action)


async def own_job(context: Context, actor: Actor, action: str) -> JobRecord:
    """The job of a task's token.

    Raises Forbidden for another token, NotFound when the job is gone.
    """
    record = await context.store.find_job(actor.job) if actor.job else None
    await context.check(actor, action, Resource("job", record.id if record else actor.job))
    if record is None:
        raise NotFound("job-not-found", "The job of this token is gone.")
    return record
