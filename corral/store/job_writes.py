"""Why: what people want of jobs is stored as one durable transaction each, before anybody acts on it."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, delete, insert, select

from corral.kernel.errors import Conflict, NotFound
from corral.kernel.ids import JobId
from corral.model.records import plain
from corral.model.runs import JobRun
from corral.model.writes import FactWrite, IntentKind, NewJob, Submitted
from corral.store import tables
from corral.store.database import Database
from corral.store.writer import Transaction

IDEMPOTENCY_SECONDS: Final = 24 * 3600.0
"""How long a repeated submit is recognised."""

_jobs, _events, _idempotency = tables.jobs, tables.events, tables.idempotency
_NAMED: Final = select(_jobs.c.id).where(_jobs.c.user == bindparam("u"), _jobs.c.name == bindparam("n")).limit(1)
_NAMED_LIVE: Final = _NAMED.where(_jobs.c.live)
_REPEATED: Final = select(_idempotency).where(
    _idempotency.c.user == bindparam("u"), _idempotency.c.key == bindparam("k"), _idempotency.c.at > bindparam("since")
)
_JOB: Final = select(_jobs.c.id).where(_jobs.c.id == bindparam("i"))
_FORGET_KEY: Final = delete(_idempotency).where(
    _idempotency.c.user == bindparam("u"), _idempotency.c.key == bindparam("k")
)


class JobWrites(Database):
    """Submits and intents."""

    async def submit(self, job: NewJob) -> Submitted:
        """Store a new job and the intent to run it; durable when this returns.

        Raises Conflict `name-taken` or `idempotency-key-reused`.
        """
        return await self.write(lambda transaction: _submit(transaction, job))

    async def submit_all(self, jobs: list[NewJob]) -> list[Submitted]:
        """Store several jobs (an array) together or not at all; raises like `submit`.

        Only the first may have an idempotency key; when that came before, the first job of then is the whole answer.
        """

        def run(transaction: Transaction) -> list[Submitted]:
            first = _submit(transaction, jobs[0])
            return [first, *(_submit(transaction, job) for job in jobs[1:])] if first.created else [first]

        return await self.write(run)

    async def intend(
        self, job: JobId, kind: IntentKind, data: dict[str, object] | None = None, *, actor: str, at: float
    ) -> int:
        """Store what `actor` wants of the job; returns its event seq.

        Raises NotFound when the job is not there.
        """

        def run(transaction: Transaction) -> int:
            if transaction.read(_JOB, {"i": job}).first() is None:
                raise NotFound("job-not-found", f"There is no job {job}.")
            message = f"{actor or 'Corral'} asked to {_WORDS[kind]} the job"
            seq = add_events(transaction, [event_row(job, at, kind, message, actor=actor, data=data, intent=True)])
            transaction.ring("control")
            transaction.ring("front")
            return seq

        return await self.write(run)

    async def tell(self, write: FactWrite) -> int:
        """Store one fact that somebody else than control saw; returns its seq."""

        def run(transaction: Transaction) -> int:
            transaction.ring("front")
            return add_events(transaction, [fact_row(write)])

        return await self.write(run)


_WORDS: Final = {
    IntentKind.SUBMITTED: "run",
    IntentKind.STOP: "stop",
    IntentKind.RESTART: "restart",
    IntentKind.SCALE: "scale",
    IntentKind.DELETE: "delete",
}


def event_row(
    job: str,
    at: float,
    kind: str,
    message: str,
    *,
    actor: str = "",
    role: str = "",
    index: int = -1,
    attempt: str = "",
    data: dict[str, object] | None = None,
    intent: bool = False,
) -> dict[str, Any]:
    """One row for `add_events`, without its seq."""
    return {
        "job": job,
        "at": at,
        "kind": str(kind),
        "intent": intent,
        "actor": actor,
        "message": clean(message),
        "role": role,
        "index": index,
        "attempt": attempt,
        "data": encode(plain(data)) if data else "{}",
    }


def fact_row(write: FactWrite) -> dict[str, Any]:
    """A fact as a row for `add_events`."""
    fact = write.fact
    return event_row(
        write.job,
        write.at,
        fact.kind,
        fact.message,
        actor=write.actor,
        role=fact.role,
        index=fact.index,
        attempt=fact.attempt,
        data=fact.data,
    )


def add_events(transaction: Transaction, rows: list[dict[str, Any]]) -> int:
    """Store events in the order given; returns the last seq."""
    first = transaction.take("event", len(rows))
    for offset, row in enumerate(rows):
        row["seq"] = first + offset
    transaction.write(insert(_events), rows)
    return first + len(rows) - 1


def encode(value: object) -> str:
    """`value` as JSON text."""
    return msgspec.json.encode(value).decode()


def clean(text: str) -> str:
    """Text that both databases store: no NUL, no lone surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _submit(transaction: Transaction, job: NewJob) -> Submitted:
    repeated = _repeated(transaction, job)
    if repeated is not None:
        return repeated
    _check_name(transaction, job)
    transaction.write(insert(_jobs), _job_row(job))
    transaction.write(insert(tables.job_documents), {"job": job.id, "doc": job.doc})
    run = JobRun(job=job.id, created_at=job.created_at, hold=job.hold)
    transaction.write(insert(tables.job_runs), {"job": job.id, "run": encode(run), "summary": encode(job.summary)})
    if job.tags:
        transaction.write(insert(tables.job_tags), [{"tag": tag, "job": job.id} for tag in dict.fromkeys(job.tags)])
    if job.depends_on:
        needs = [{"job": job.id, "needs": need} for need in dict.fromkeys(job.depends_on)]
        transaction.write(insert(tables.job_dependencies), needs)
    if job.secrets:
        sealed = [
            {"owner": f"job:{job.id}", "name": name, "sealed": value, "created_at": job.created_at}
            for name, value in job.secrets.items()
        ]
        transaction.write(insert(tables.secrets), sealed)
    actor = job.actor or job.user
    message = f"{actor} submitted {job.name} to queue {job.queue}"
    seq = add_events(
        transaction, [event_row(job.id, job.created_at, IntentKind.SUBMITTED, message, actor=actor, intent=True)]
    )
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


def _check_name(transaction: Transaction, job: NewJob) -> None:
    if job.unique_name == "none":
        return
    query = _NAMED if job.unique_name == "ever" else _NAMED_LIVE
    if transaction.read(query, {"u": job.user, "n": job.name}).first() is not None:
        raise Conflict(
            "name-taken", f"{job.user} has a job named {job.name} already; choose another name, or stop that one first."
        )
