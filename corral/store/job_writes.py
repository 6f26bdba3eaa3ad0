"""Store submissions and users' intents for jobs, one durable transaction each, before control acts on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Select, bindparam, delete, func, insert, select, update

from corral.kernel.errors import Conflict, NotFound
from corral.kernel.ids import AttemptId, JobId, parse_attempt_id
from corral.kernel.units import DEVICE
from corral.model.accounts import AuditWrite
from corral.model.budgets import Standing
from corral.model.records import JobSummary
from corral.model.runs import JobRun, TaskStep, WorkReport
from corral.model.store_writes import FactWrite, IntentKind, NewJob, SubmitLimit, Submitted, file_owner
from corral.store import tables
from corral.store.audit import write_audit
from corral.store.budget_records import check_stored
from corral.store.database import Database
from corral.store.object_links import already_linked, link
from corral.store.open_tasks import ADD, check_restarted, check_scaled, check_submitted, open_tasks
from corral.store.rows import add_events, encode, event_row, fact_row, longest_seconds
from corral.store.submission_rate import count_submission
from corral.store.tenant_tables import job_names
from corral.store.writer import Transaction

IDEMPOTENCY_SECONDS: Final = 24 * 3600.0
"""Seconds for which a repeated submission is recognised by its idempotency key."""
CHECKPOINT_SECONDS: Final = 5.0
"""Seconds by which a stored checkpoint of a job attempt must follow the one before."""
REPORT_SECONDS: Final = 8.0
"""Seconds by which a report of a job attempt's work must come after the stored one. Tasks send one in ten seconds, and some
take longer on their way than others."""


class _Data(msgspec.Struct, rename="camel"):
    """What is read of an event that replaces the one before."""

    job_attempt: int
    report: WorkReport | None = None
    told_at: float = 0.0
    """When the report came; 0 in events of earlier versions."""


_jobs, _idempotency = tables.jobs, tables.idempotency
_NAMED: Final = select(_jobs.c.id).where(_jobs.c.user == bindparam("u"), _jobs.c.name == bindparam("n")).limit(1)
_REPEATED: Final = select(_idempotency).where(
    _idempotency.c.user == bindparam("u"), _idempotency.c.key == bindparam("k"), _idempotency.c.at > bindparam("since")
)
_JOB: Final = select(_jobs.c.id).where(_jobs.c.id == bindparam("i"))
_events = tables.events
_LATEST: Final = (
    select(_events.c.at, _events.c.data)
    .where(_events.c.job == bindparam("i"), _events.c.kind == bindparam("k"))
    .order_by(_events.c.seq.desc())
    .limit(1)
)
_FORGET: Final = delete(_events).where(_events.c.job == bindparam("i"), _events.c.kind == bindparam("k"))
_ROW: Final = 200
"""Characters that count for each stored report in addition to its message and data."""
_REPORTED: Final = select(
    func.coalesce(func.sum(func.length(_events.c.message) + func.length(_events.c.data) + _ROW), 0)
).where(_events.c.job == bindparam("i"), _events.c.kind.startswith("runtime."))
_DATA: Final = msgspec.json.Decoder(_Data)
_runs = tables.job_runs
_SUMMARY: Final = msgspec.json.Decoder(JobSummary)
_TAGGED: Final = (
    select(_jobs.c.live, _runs.c.summary).join(_runs, _runs.c.job == _jobs.c.id).where(_jobs.c.id == bindparam("i"))
)
_TAGS: Final = select(tables.job_tags.c.tag).where(tables.job_tags.c.job == bindparam("i"))
_UNTAG: Final = delete(tables.job_tags).where(
    tables.job_tags.c.job == bindparam("i"), tables.job_tags.c.tag == bindparam("t")
)
_SUMMARY_ROW: Final = update(_runs).where(_runs.c.job == bindparam("i")).values(summary=bindparam("text"))
_FORGET_KEY: Final = delete(_idempotency).where(
    _idempotency.c.user == bindparam("u"), _idempotency.c.key == bindparam("k")
)


class JobWrites(Database):
    """Submissions and intents."""

    async def submit(self, job: NewJob) -> Submitted:
        """Store a new job and the intent to run it; durable when this returns.

        Raises Conflict `name-taken` or `idempotency-key-reused`.
        """
        return await self.write(lambda transaction: _submit(transaction, job))

    async def submit_all(
        self,
        jobs: list[NewJob],
        *,
        audit: AuditWrite | None = None,
        most_tasks: int = 0,
        limit: SubmitLimit | None = None,
        budgets: Sequence[Standing] = (),
    ) -> list[Submitted]:
        """Store several jobs (an array) in one transaction; raises like `submit`.

        Only the first job may have an idempotency key. When the key is known, the result is only the first job stored
        then. With `most_tasks`, raises TooManyRequests `too-many-tasks` when the user's live jobs would have more
        tasks. With `limit`, raises `too-many-calls` when the user reached the limit of submissions in this hour. With
        `budgets`, raises Conflict `budget-used-up` when one of them does not hold the jobs.
        """

        def run(transaction: Transaction) -> list[Submitted]:
            first = _submit(transaction, jobs[0], limit)
            if not first.created:
                return [first]
            rest = [_submit(transaction, job) for job in jobs[1:]]
            if most_tasks:
                check_submitted(transaction.read, jobs, most_tasks)
            notes = check_stored(transaction.read, budgets, [job.id for job in jobs], jobs[0].created_at)
            write_audit(transaction, audit)
            return [msgspec.structs.replace(first, notes=tuple(notes)), *rest]

        return await self.write(run)

    async def open_tasks(self, user: str) -> int:
        """Count the waiting and running tasks of a user's live jobs."""
        return await self.read(lambda connection: open_tasks(connection.execute, user))

    async def add_intent(
        self,
        job: JobId,
        kind: IntentKind,
        data: dict[str, object] | None = None,
        *,
        actor: str,
        at: float,
        audit: AuditWrite | None = None,
    ) -> int:
        """Store an intent of `actor` for a job and return its event seq.

        Raises NotFound when the job does not exist.
        """

        def run(transaction: Transaction) -> int:
            _check_there(transaction, job)
            return add_intents(transaction, job, kind, [data], actor, at, [audit])

        return await self.write(run)

    async def scale(
        self,
        job: JobId,
        sizes: Mapping[str, int],
        *,
        asked: Mapping[str, int],
        actor: str,
        at: float,
        audits: Sequence[AuditWrite | None] = (),
        most_tasks: int = 0,
    ) -> int:
        """Store new numbers of tasks for some roles of a job, all or none; returns the last event seq.

        `asked` has the numbers in the job's document by role; `audits` has one line for each role.

        Raises NotFound when the job does not exist. With `most_tasks`, raises TooManyRequests `too-many-tasks` when the
        job grows and the user's live jobs would have more tasks.
        """

        def run(transaction: Transaction) -> int:
            _check_there(transaction, job)
            more = check_scaled(transaction.read, job, sizes, asked, most_tasks)
            data: list[dict[str, object] | None] = [{"role": role, "replicas": size} for role, size in sizes.items()]
            seq = add_intents(transaction, job, IntentKind.SCALE, data, actor, at, audits)
            if more:
                transaction.write(ADD, {"j": job, "more": more})
            return seq

        return await self.write(run)

    async def check_scale(
        self, job: JobId, sizes: Mapping[str, int], asked: Mapping[str, int], most_tasks: int
    ) -> None:
        """Raise the errors of a `scale` with these arguments, without storing anything.

        Raises TooManyRequests `too-many-tasks`.
        """
        await self.read(lambda connection: check_scaled(connection.execute, job, sizes, asked, most_tasks))

    async def restart(
        self, job: JobId, *, actor: str, at: float, audit: AuditWrite | None = None, most_tasks: int = 0
    ) -> int:
        """Store that `actor` restarts a job; returns the event seq.

        Raises NotFound when the job does not exist. With `most_tasks`, raises TooManyRequests `too-many-tasks` when the
        job has ended and the user's live jobs would have more tasks with it.
        """

        def run(transaction: Transaction) -> int:
            _check_there(transaction, job)
            if most_tasks:
                check_restarted(transaction.read, job, most_tasks)
            return add_intents(transaction, job, IntentKind.RESTART, [None], actor, at, [audit])

        return await self.write(run)

    async def checkpointed(self, attempt: AttemptId, at: float) -> bool:
        """Store the time of a job attempt's latest checkpoint, in place of the one before.

        False when nothing was stored: the job is gone, or its stored checkpoint is of a later attempt or less than
        `CHECKPOINT_SECONDS` older.
        """
        key = parse_attempt_id(attempt)
        write = _Latest(IntentKind.CHECKPOINTED, at, f"{key.task} has saved the work", {"jobAttempt": key.job_attempt})

        def is_news(last: _Data, last_at: float) -> bool:
            return _is_news(key.job_attempt, at, last.job_attempt, last_at, CHECKPOINT_SECONDS)

        return await self._replace_latest(attempt, write, is_news)

    async def work_reported(
        self, attempt: AttemptId, report: WorkReport, *, others: Sequence[TaskStep] = (), told_at: float | None = None
    ) -> bool:
        """Store what a job attempt's program says of its work, in place of what it said before.

        With it go the steps that `others` of its tasks have reported meanwhile. It came at `told_at`, else when it was
        made.

        False when nothing was stored: the job is gone, or its stored report is of a later attempt, not older, or came
        less than `REPORT_SECONDS` before; or is the same, brings nothing of others, and was not made `REPORT_SECONDS`
        later. The first report of finished work is always stored.
        """
        key = parse_attempt_id(attempt)
        came = report.at if told_at is None else told_at
        data = {
            "jobAttempt": key.job_attempt, "role": key.role, "index": key.index, "report": msgspec.to_builtins(report),
            "toldAt": came,
        }  # fmt: skip
        if others:
            data["others"] = msgspec.to_builtins(others)
        write = _Latest(IntentKind.WORK_REPORTED, report.at, f"{key.task} has reported its work", data)

        def is_news(last: _Data, last_at: float) -> bool:
            if report.progress == 1 and (last.report is None or last.report.progress != 1):
                return _is_news(key.job_attempt, report.at, last.job_attempt, last_at, 0.0)
            soon = key.job_attempt == last.job_attempt and report.at < last_at + REPORT_SECONDS
            if soon and not others and last.report == msgspec.structs.replace(report, at=last_at):
                return False  # said once more, and only its time was computed anew
            newer = report.at > last_at or key.job_attempt > last.job_attempt
            return newer and _is_news(key.job_attempt, came, last.job_attempt, last.told_at or last_at, REPORT_SECONDS)

        return await self._replace_latest(attempt, write, is_news)

    async def _replace_latest(
        self, attempt: AttemptId, write: _Latest, is_news: Callable[[_Data, float], bool]
    ) -> bool:
        """Store an event of a job in place of the one of its kind; False when the job is gone or it is no news."""
        key = parse_attempt_id(attempt)
        which = {"i": key.job, "k": str(write.kind)}

        def known(last: Any) -> bool:
            return last is not None and not is_news(_DATA.decode(last.data), last.at)

        if known(await self.read(lambda connection: connection.execute(_LATEST, which).first())):
            return False  # too frequent reports must not wait for the writer

        def run(transaction: Transaction) -> bool:
            if known(transaction.read(_LATEST, which).first()):
                return False
            if transaction.read(_JOB, {"i": key.job}).first() is None:
                return False
            transaction.write(_FORGET, which)
            row = event_row(
                key.job,
                write.at,
                write.kind,
                write.message,
                actor="runtime",
                role=key.role,
                index=key.index,
                attempt=attempt,
                data=write.data,
                intent=True,
            )
            add_events(transaction, [row])
            transaction.ring("control")
            transaction.ring("front")
            return True

        return await self.write(run)

    async def change_tag(
        self, job: JobId, tag: str, *, there: bool, actor: str, at: float, audit: AuditWrite | None = None
    ) -> bool:
        """Add or remove a tag of a job; False when nothing changed.

        Raises NotFound when the job does not exist.
        """
        add, remove = ((tag,), ()) if there else ((), (tag,))
        return await self.change_tags(job, add, remove, actor=actor, at=at, audit=audit)

    async def change_tags(
        self,
        job: JobId,
        add: Sequence[str],
        remove: Sequence[str],
        *,
        actor: str,
        at: float,
        audit: AuditWrite | None = None,
        most: int | None = None,
    ) -> bool:
        """Add and remove tags of a job, together; False when nothing changed.

        Raises NotFound when the job does not exist, Conflict `too-many-tags` when it would have more than `most`.
        """

        def run(transaction: Transaction) -> bool:
            row = transaction.read(_TAGGED, {"i": job}).first()
            if row is None:
                raise NotFound("job-not-found", f"There is no job {job}.")
            stored = frozenset(transaction.read(_TAGS, {"i": job}).scalars())
            gone = tuple(tag for tag in dict.fromkeys(remove) if tag in stored)
            new = tuple(tag for tag in dict.fromkeys(add) if tag not in stored)
            if not gone and not new:
                return False
            if new and most is not None and len(stored) + len(new) - len(gone) > most:
                raise Conflict("too-many-tags", f"A job has {most} tags at most; remove some first.")
            for tag in gone:
                transaction.write(_UNTAG, {"i": job, "t": tag})
            for tag in new:
                transaction.write(insert(tables.job_tags), {"job": job, "tag": tag})
            summary = _SUMMARY.decode(row.summary)
            tags = (*(tag for tag in summary.tags if tag not in gone and tag not in new), *new)
            text = encode(msgspec.structs.replace(summary, tags=tags))
            transaction.write(_SUMMARY_ROW, {"i": job, "text": text})
            data: dict[str, object] = {"tags": tags}
            told = event_row(
                job, at, IntentKind.TAGS, _tags_said(actor, new, gone), actor=actor, data=data, intent=row.live
            )
            add_events(transaction, [told])
            write_audit(transaction, audit)
            transaction.ring("control")
            transaction.ring("front")
            return True

        return await self.write(run)

    async def report(self, write: FactWrite, most: int) -> bool:
        """Store a task's report; False when the reports of its job would exceed `most` characters."""
        row = fact_row(write)
        size = len(row["message"]) + len(row["data"]) + _ROW

        def run(transaction: Transaction) -> bool:
            stored: int = transaction.read(_REPORTED, {"i": write.job}).scalar_one()
            if stored + size > most:
                return False
            transaction.ring("front")
            add_events(transaction, [row])
            return True

        return await self.write(run)

    async def tell(self, write: FactWrite) -> int:
        """Store one fact that was not observed by control; returns its seq."""

        def run(transaction: Transaction) -> int:
            transaction.ring("front")
            return add_events(transaction, [fact_row(write)])

        return await self.write(run)


class _Latest(NamedTuple):
    """An event that replaces the one of its kind of the same job."""

    kind: IntentKind
    at: float
    message: str
    data: dict[str, object]


def _is_news(attempt: int, at: float, last_attempt: int, last_at: float, apart: float) -> bool:
    """Whether a report is to be stored: a later attempt, or `apart` seconds after the stored one."""
    return attempt > last_attempt or (attempt == last_attempt and at >= last_at + apart)


_WORDS: Final = {
    IntentKind.SUBMITTED: "run",
    IntentKind.STOP: "stop",
    IntentKind.RESTART: "restart",
    IntentKind.SCALE: "scale",
    IntentKind.SUSPEND: "suspend",
    IntentKind.RESUME: "resume",
    IntentKind.MIGRATE: "migrate a task of",
    IntentKind.DELETE: "delete",
    IntentKind.TAGS: "tag",
    IntentKind.ORDER: "reorder",
    IntentKind.EDIT: "edit",
}


def _asked(kind: IntentKind, data: Mapping[str, object] | None) -> str:
    """What a person asked for, in the words of an event; of a reorder where the job goes."""
    if kind is not IntentKind.ORDER or data is None:
        return f"{_WORDS[kind]} the job"
    place, before = data.get("place"), data.get("beforeName")
    where = f" in queue {data['queue']}" if "queue" in data else ""
    if place == "before" and before:
        return f"move the job before {before}{where}"
    if place in ("first", "last"):
        return f"move the job to the {place} place{where}"
    return f"move the job to its own place{where}" if place == "own" else f"{_WORDS[kind]} the job"


def _check_there(transaction: Transaction, job: JobId) -> None:
    if transaction.read(_JOB, {"i": job}).first() is None:
        raise NotFound("job-not-found", f"There is no job {job}.")


def add_intents(
    transaction: Transaction,
    job: JobId,
    kind: IntentKind,
    data: Sequence[dict[str, object] | None],
    actor: str,
    at: float,
    audits: Sequence[AuditWrite | None],
) -> int:
    """Store an intent for each element of `data`; returns the last event seq."""
    who = actor or "Corral"
    new = [
        event_row(job, at, kind, f"{who} asked to {_asked(kind, each)}", actor=actor, data=each, intent=True)
        for each in data
    ]
    seq = add_events(transaction, new)
    for audit in audits:
        write_audit(transaction, audit)
    transaction.ring("control")
    transaction.ring("front")
    return seq


def _submit(transaction: Transaction, job: NewJob, limit: SubmitLimit | None = None) -> Submitted:
    repeated = _repeated(transaction, job) or already_linked(transaction, job.object)
    if repeated is not None:
        return repeated
    _check_name(transaction, job)
    if limit is not None:
        count_submission(transaction, job.user, limit, job.created_at)
    transaction.write(insert(_jobs), _job_row(job))
    transaction.write(insert(tables.job_documents), {"job": job.id, "doc": job.doc})
    if job.object is not None:
        link(transaction, job.object)
    run = JobRun(job=job.id, created_at=job.created_at, hold=job.hold, external=job.external, suspended=job.suspended)
    transaction.write(insert(tables.job_runs), {"job": job.id, "run": encode(run), "summary": encode(job.summary)})
    if job.submitted_as is not None:
        said = job.submitted_as
        row = {"job": job.id, "user": job.user, "name": said.name, **said.columns}
        transaction.write(insert(job_names()[said.table].table), row)
    if job.tags:
        transaction.write(insert(tables.job_tags), [{"tag": tag, "job": job.id} for tag in dict.fromkeys(job.tags)])
    if job.depends_on:
        needs = [{"job": job.id, "needs": need} for need in dict.fromkeys(job.depends_on)]
        transaction.write(insert(tables.job_dependencies), needs)
    if job.file is not None:
        given = {"job": job.id, "text": job.file.text, "parameters": encode(job.file.parameters)}
        transaction.write(insert(tables.job_files), given)
    owners = {f"job:{job.id}": job.secrets, file_owner(job.id): job.file.secrets if job.file is not None else {}}
    sealed = [
        {"owner": owner, "name": name, "sealed": value, "created_at": job.created_at}
        for owner, secrets in owners.items()
        for name, value in secrets.items()
    ]
    if sealed:
        transaction.write(insert(tables.secrets), sealed)
    actor = job.actor or job.user
    message = f"{actor} submitted {job.name} to queue {job.queue}"
    intents = [event_row(job.id, job.created_at, IntentKind.SUBMITTED, message, actor=actor, intent=True)]
    seq = add_events(transaction, intents)
    if job.idempotency_key:
        _remember_key(transaction, job, seq)
    transaction.ring("control")
    transaction.ring("front")
    return Submitted(job.id, True, seq)


def _job_row(job: NewJob) -> dict[str, object]:
    return {
        "id": job.id,
        "user": job.user,
        "name": job.name,
        "queue": job.queue,
        "priority": job.priority,
        "job_type": job.job_type,
        "phase": job.summary.state,
        "live": True,
        "created_at": job.created_at,
        "started_at": None,
        "ended_at": None,
        "revision": 0,
        "array_parent": job.array_parent,
        "tasks": job.summary.tasks.open,
        "device_millis": round(DEVICE * job.summary.devices),
        "longest_seconds": longest_seconds(job.doc),
    }


def _repeated(transaction: Transaction, job: NewJob) -> Submitted | None:
    if not job.idempotency_key:
        return None
    since = job.created_at - IDEMPOTENCY_SECONDS
    found = transaction.read(_REPEATED, {"u": job.user, "k": job.idempotency_key, "since": since}).first()
    if found is None:
        return None
    if found.request_hash != job.request_hash:
        raise Conflict(
            "idempotency-key-reused",
            "This idempotency key came before with another request; send a new key with a new request.",
        )
    return Submitted(JobId(found.job), False, found.seq)


def _remember_key(transaction: Transaction, job: NewJob, seq: int) -> None:
    transaction.write(_FORGET_KEY, {"u": job.user, "k": job.idempotency_key})
    row = {
        "user": job.user,
        "key": job.idempotency_key,
        "job": job.id,
        "seq": seq,
        "request_hash": job.request_hash,
        "at": job.created_at,
    }
    transaction.write(insert(_idempotency), row)


@cache
def _same_name(table: str, *, live: bool) -> tuple[Select[Any], ...]:
    """Queries that find jobs of a name: by their own, or by the names of a tenant's `table` and, without one, their own."""
    named: tuple[Select[Any], ...] = (_NAMED,)
    if table:
        submitted = job_names()[table].table
        joined = select(_jobs.c.id).join(submitted, submitted.c.job == _jobs.c.id).limit(1)
        as_submitted = joined.where(submitted.c.user == bindparam("u"), submitted.c.name == bindparam("n"))
        others = _NAMED.outerjoin(submitted, submitted.c.job == _jobs.c.id).where(submitted.c.job.is_(None))
        named = (as_submitted, others)
    return tuple(query.where(_jobs.c.live) for query in named) if live else named


def _check_name(transaction: Transaction, job: NewJob) -> None:
    if job.unique_name == "none":
        return
    name, table = (job.name, "") if job.submitted_as is None else (job.submitted_as.name, job.submitted_as.table)
    queries = _same_name(table, live=job.unique_name != "ever")
    if any(transaction.read(query, {"u": job.user, "n": name}).first() is not None for query in queries):
        raise Conflict(
            "name-taken", f"{job.user} has a job named {name} already; choose another name, or stop that one first."
        )


def _tags_said(actor: str, new: Sequence[str], gone: Sequence[str]) -> str:
    """The message of the event for a change of tags."""
    given, taken = (
        f"the {'tag' if len(tags) == 1 else 'tags'} {', '.join(tags)}" if tags else "" for tags in (new, gone)
    )
    if given and taken:
        return f"{actor} gave the job {given} and took {taken} from it"
    return f"{actor} gave the job {given}" if given else f"{actor} took {taken} from the job"
