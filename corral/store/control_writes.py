"""Load live jobs for control, and commit its decisions in one transaction guarded by the leadership epoch.

A process that no longer leads cannot commit, and engines receive commands only after the commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Update, bindparam, delete, insert, select, update

from corral.kernel.errors import Conflict
from corral.kernel.ids import JobId, TaskKey, parse_attempt_id
from corral.kernel.units import DEVICE
from corral.model.commands import EngineCommand
from corral.model.inventory import Node
from corral.model.records import JobSummary
from corral.model.runs import JobRun, Served, TaskRun
from corral.model.store_writes import (
    AttemptWrite,
    CommitResult,
    ControlBatch,
    Intent,
    JobWrite,
    LiveJob,
    OutboxRow,
    TaskWrite,
)
from corral.spec.priority import PRIORITY_CLASSES
from corral.store import tables
from corral.store.account_ids import OF_JOB
from corral.store.database import Database, rows
from corral.store.database_errors import LeadershipLost
from corral.store.job_removal import remove_jobs
from corral.store.open_tasks import AS_CONTROL_SAYS
from corral.store.preemption_records import write_ledger, write_receipts, write_usage, write_user_usage
from corral.store.rows import add_events, clean, encode, event_row, fact_row, longest_seconds, put
from corral.store.tenant_tables import job_names
from corral.store.writer import Transaction

_jobs, _runs, _tasks, _outbox = tables.jobs, tables.job_runs, tables.tasks, tables.outbox
_RUN: Final = msgspec.json.Decoder(JobRun)
_SUMMARY: Final = msgspec.json.Decoder(JobSummary)
_TASK: Final = msgspec.json.Decoder(TaskRun)
_COMMAND: Final[msgspec.json.Decoder[EngineCommand]] = msgspec.json.Decoder(EngineCommand)
_DATA: Final = msgspec.json.Decoder(dict[str, Any])


class _Ended(msgspec.Struct):
    """The part of the `JobRun` of an ended job that is read for policies."""

    served: Served | None = None


_ENDED: Final = msgspec.json.Decoder(_Ended)
_ENDED_RUNS: Final = (
    select(_runs.c.run)
    .join(_jobs, _jobs.c.id == _runs.c.job)
    .where(_jobs.c.ended_at.is_not(None), _jobs.c.live.is_(False))
    .order_by(_jobs.c.ended_at.desc(), _jobs.c.id.desc())
)

_AT_ONCE: Final = 200
"""Ids in one query at most."""
_LEADER: Final = select(tables.leadership.c.epoch, tables.leadership.c.cursor)
_INTENTS: Final = (
    select(tables.events)
    .where(tables.events.c.intent, tables.events.c.seq > bindparam("after"))
    .order_by(tables.events.c.seq)
    .limit(bindparam("most"))
)
_CURSOR: Final = update(tables.leadership).values(cursor=bindparam("c"))
_REVISION: Final = select(_jobs.c.revision).where(_jobs.c.id == bindparam("j"))
_JOB_ROW: Final = (
    update(_jobs)
    .where(_jobs.c.id == bindparam("j"))
    .values(
        phase=bindparam("phase"),
        live=bindparam("live"),
        tasks=AS_CONTROL_SAYS,
        started_at=bindparam("started_at"),
        ended_at=bindparam("ended_at"),
        device_millis=bindparam("device_millis"),
        revision=_jobs.c.revision + 1,
    )
)
_PLACE: Final = update(_jobs).where(_jobs.c.id == bindparam("j"))
_CLASSES: Final = {number: name for name, number in PRIORITY_CLASSES.items()}
"""The names of priorities by number, as lists of tenants show them."""
_DOC: Final = (
    update(tables.job_documents).where(tables.job_documents.c.job == bindparam("j")).values(doc=bindparam("d"))
)
_RUN_ROW: Final = (
    update(_runs).where(_runs.c.job == bindparam("j")).values(run=bindparam("run"), summary=bindparam("summary"))
)
_TASK_GONE: Final = delete(_tasks).where(
    _tasks.c.job == bindparam("j"), _tasks.c.role == bindparam("r"), _tasks.c.index == bindparam("i")
)
_OUTBOX_DONE: Final = delete(_outbox).where(_outbox.c.seq == bindparam("s"))
_LIVE: Final = (
    select(
        _jobs.c.id,
        _jobs.c.name,
        _jobs.c.user,
        OF_JOB,
        _jobs.c.queue,
        _jobs.c.priority,
        _jobs.c.created_at,
        _jobs.c.revision,
        tables.job_documents.c.doc,
        _runs.c.run,
        _runs.c.summary,
    )
    .join(tables.job_documents, tables.job_documents.c.job == _jobs.c.id)
    .join(_runs, _runs.c.job == _jobs.c.id)
)


class ControlWrites(Database):
    """Reads and commits of control."""

    async def load_live(self) -> list[LiveJob]:
        """Every live job with its tasks, oldest first."""

        live = select(_jobs.c.id).where(_jobs.c.live)
        return await self.read(lambda connection: _load(connection, _jobs.c.live, _tasks.c.job.in_(live)))

    async def load_job(self, job: JobId) -> LiveJob | None:
        """One job with its tasks, live or ended; None when it does not exist."""
        found = await self.load_jobs([job])
        return found[0] if found else None

    async def load_jobs(self, jobs: Sequence[JobId]) -> list[LiveJob]:
        """Those of `jobs` that exist, live or ended, with their tasks, oldest first."""
        wanted = list(jobs)
        if not wanted:
            return []
        return await self.read(lambda connection: _load(connection, _jobs.c.id.in_(wanted), _tasks.c.job.in_(wanted)))

    async def ended_service(self, most: int) -> list[float]:
        """The device-seconds attained by those of the latest `most` ended jobs that ran, in the order of their ends."""
        latest = _ENDED_RUNS.limit(most)
        found = await self.read(lambda connection: [_ENDED.decode(text) for (text,) in connection.execute(latest)])
        served = (each.served for each in reversed(found))
        return [each.device_seconds for each in served if each is not None and each.starts]

    async def intents(self, after_seq: int, limit: int = 1000) -> list[Intent]:
        """The intents after `after_seq`, in commit order."""
        wanted = {"after": after_seq, "most": limit}
        return [
            Intent(row.seq, JobId(row.job), row.kind, row.actor, row.at, _DATA.decode(row.data))
            for row in await self.read(lambda connection: rows(connection, _INTENTS, wanted))
        ]

    async def commit(self, batch: ControlBatch) -> CommitResult:
        """Store one cycle's decisions.

        Raises LeadershipLost when another epoch has begun, Conflict `stale-revision` when a guard does not hold.
        """
        return await self.write(lambda transaction: _commit(transaction, batch))

    async def outbox(self) -> list[OutboxRow]:
        """The commands that may not have been carried out yet, in order."""
        query = select(_outbox).order_by(_outbox.c.seq)
        found = await self.read(lambda connection: rows(connection, query))
        return [OutboxRow(row.seq, JobId(row.job), _COMMAND.decode(row.command)) for row in found]

    async def put_nodes(self, epoch: int, engine: str, found: Sequence[Node], at: float) -> None:
        """Replace the stored nodes of an engine by those that it reports now.

        Raises LeadershipLost.
        """
        table = tables.nodes

        def run(transaction: Transaction) -> None:
            check_epoch(transaction, epoch)
            transaction.write(delete(table).where(table.c.engine == engine))
            if found:
                new = [
                    {"name": node.name, "engine": engine, "doc": encode(node), "ready": node.ready, "seen_at": at}
                    for node in found
                ]
                transaction.write(insert(table), new)
            transaction.ring("front")

        await self.write(run)
        self.admission_changed()


def check_epoch(transaction: Transaction, epoch: int) -> int:
    """Refuse a control process that no longer leads; returns the cursor."""
    row = transaction.read(_LEADER).one()
    if row.epoch != epoch:
        raise LeadershipLost
    return int(row.cursor)


def _load(connection: Connection, which: Any, whose: Any) -> list[LiveJob]:
    found = connection.execute(_LIVE.where(which).order_by(_jobs.c.id)).all()
    tasks: dict[str, dict[TaskKey, TaskRun]] = defaultdict(dict)
    query = select(_tasks.c.job, _tasks.c.run).where(whose).order_by(_tasks.c.role, _tasks.c.index)
    for job, text in connection.execute(query):
        task = _TASK.decode(text)
        tasks[job][task.key] = task
    return [_live_job(row, tasks.get(row.id, {})) for row in found]


def _live_job(row: Any, tasks: dict[TaskKey, TaskRun]) -> LiveJob:
    return LiveJob(
        id=JobId(row.id),
        name=row.name,
        user=row.user,
        queue=row.queue,
        priority=row.priority,
        created_at=row.created_at,
        doc=row.doc,
        run=_RUN.decode(row.run),
        summary=_SUMMARY.decode(row.summary),
        revision=row.revision,
        tasks=tasks,
        account=row.account,
    )


def _commit(transaction: Transaction, batch: ControlBatch) -> CommitResult:
    stored_cursor = check_epoch(transaction, batch.epoch)
    for job in batch.jobs:
        if job.guard is not None and transaction.read(_REVISION, {"j": job.id}).scalar() != job.guard:
            raise Conflict("stale-revision", f"Job {job.id} has changed since it was read; read it again.")
    if batch.jobs:
        _write_jobs(transaction, batch.jobs, stored_cursor if batch.cursor is None else batch.cursor)
    if batch.tasks:
        _write_tasks(transaction, batch.tasks)
    if batch.attempts:
        rows_now = [_attempt_row(each) for each in _last_of_each(batch.attempts)]
        put(transaction, tables.attempts, rows_now, known=("model",))
    if batch.facts:
        add_events(transaction, [fact_row(each) for each in batch.facts])
    if batch.server_events:
        told = batch.server_events
        add_events(transaction, [event_row("", each.at, each.kind, each.message, actor=each.actor) for each in told])
    if batch.receipts:
        write_receipts(transaction, batch.receipts)
    if batch.ledger:
        write_ledger(transaction, batch.ledger)
    write_usage(transaction, batch.usage, batch.usage_forgotten)
    write_user_usage(transaction, batch.user_usage, batch.user_usage_forgotten)
    if batch.outbox_done:
        transaction.write(_OUTBOX_DONE, [{"s": seq} for seq in batch.outbox_done])
    seqs = _add_outbox(transaction, batch)
    if batch.removed_jobs:
        remove_jobs(transaction, batch.removed_jobs)
    if batch.cursor is not None and batch.cursor != stored_cursor:
        transaction.write(_CURSOR, {"c": batch.cursor})
    if batch.jobs or batch.tasks or batch.facts or batch.server_events or batch.removed_jobs:
        transaction.ring("front")
    return CommitResult(seqs, transaction.current("event"))


def _write_jobs(transaction: Transaction, jobs: Sequence[JobWrite], cursor: int) -> None:
    transaction.write(
        _JOB_ROW,
        [
            {
                "j": job.id,
                "phase": job.phase,
                "live": job.live,
                "tasks": job.summary.tasks.open,
                "device_millis": round(DEVICE * job.summary.devices),
                "after": cursor,
                "started_at": job.run.started_at,
                "ended_at": job.run.ended_at,
            }
            for job in jobs
        ],
    )
    transaction.write(_RUN_ROW, [{"j": job.id, "run": encode(job.run), "summary": encode(job.summary)} for job in jobs])
    for job in jobs:
        changed: dict[str, Any] = {}
        if job.priority is not None:
            changed["priority"] = job.priority
        if job.queue is not None:
            changed["queue"] = job.queue
        if job.doc is not None:
            changed["longest_seconds"] = longest_seconds(job.doc)
        if changed:
            transaction.write(_PLACE.values(**changed), {"j": job.id})
        if job.priority is not None:
            for statement in _shown_priorities():
                transaction.write(statement, {"j": job.id, "p": _CLASSES.get(job.priority)})
        if job.doc is not None:
            transaction.write(_DOC, {"j": job.id, "d": job.doc})


@cache
def _shown_priorities() -> tuple[Update, ...]:
    """Statements that set a job's priority in the tables of tenants that show it."""
    return tuple(
        update(each.table).where(each.table.c.job == bindparam("j")).values({each.priority.name: bindparam("p")})
        for each in job_names().values()
        if each.priority is not None
    )


def _write_tasks(transaction: Transaction, tasks: Sequence[TaskWrite]) -> None:
    last = {(task.job, task.key): task for task in tasks}
    gone = [{"j": task.job, "r": task.key.role, "i": task.key.index} for task in last.values() if task.run is None]
    if gone:
        transaction.write(_TASK_GONE, gone)
    kept = [
        {
            "job": task.job,
            "role": task.key.role,
            "index": task.key.index,
            "state": str(task.run.state),
            "node": task.run.placement.node if task.run.placement else "",
            "run": encode(task.run),
        }
        for task in last.values()
        if task.run is not None
    ]
    if kept:
        put(transaction, tables.tasks, kept)


def _last_of_each(attempts: Sequence[AttemptWrite]) -> list[AttemptWrite]:
    return list({attempt.id: attempt for attempt in attempts}.values())


def _attempt_row(attempt: AttemptWrite) -> dict[str, Any]:
    key = parse_attempt_id(attempt.id)
    return {
        "id": attempt.id,
        "job": key.job,
        "job_attempt": key.job_attempt,
        "role": key.role,
        "index": key.index,
        "task_attempt": key.task_attempt,
        "user": attempt.user,
        "node": attempt.node,
        "devices": encode(attempt.devices),
        "millis": attempt.device_millis,
        "model": clean(attempt.model),
        "cpu_millis": attempt.cpu_millis,
        "memory_bytes": attempt.memory_bytes,
        "host": attempt.host,
        "ports": encode(attempt.ports),
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
        "code": attempt.code,
        "phrase": clean(attempt.phrase),
        "exit_class": attempt.exit_class,
        "diagnostics": clean(attempt.diagnostics),
    }


def _add_outbox(transaction: Transaction, batch: ControlBatch) -> tuple[int, ...]:
    if not batch.outbox_add:
        return ()
    first = transaction.take("outbox", len(batch.outbox_add))
    new = [
        {"seq": first + offset, "job": job, "command": encode(command)}
        for offset, (job, command) in enumerate(batch.outbox_add)
    ]
    transaction.write(insert(_outbox), new)
    return tuple(range(first, first + len(new)))
