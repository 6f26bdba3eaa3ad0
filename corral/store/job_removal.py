"""Remove jobs with all their rows, leaving one line each in the history."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from sqlalchemy import Delete, bindparam, delete, exists, insert, literal, select

from corral.kernel.ids import JobId
from corral.model.compile_caches import CacheScope
from corral.model.store_writes import file_owner
from corral.store import tables
from corral.store.compile_caches import drop_caches
from corral.store.profile_records import removal_with_job
from corral.store.tenant_tables import tenant_tables
from corral.store.usage_records import keep_usage
from corral.store.writer import Transaction

_PARTS: Final = (
    (tables.jobs, tables.jobs.c.id),
    (tables.job_documents, tables.job_documents.c.job),
    (tables.job_runs, tables.job_runs.c.job),
    (tables.job_tags, tables.job_tags.c.job),
    (tables.orphaned_jobs, tables.orphaned_jobs.c.job),
    (tables.job_dependencies, tables.job_dependencies.c.job),
    (tables.tasks, tables.tasks.c.job),
    (tables.attempts, tables.attempts.c.job),
    (tables.attempt_use, tables.attempt_use.c.job),
    (tables.events, tables.events.c.job),
    (tables.outbox, tables.outbox.c.job),
    (tables.receipts, tables.receipts.c.job),
    (tables.idle_jobs, tables.idle_jobs.c.job),
    (tables.compile_cache_uses, tables.compile_cache_uses.c.job),
    (tables.idempotency, tables.idempotency.c.job),
)
_SECRETS: Final = delete(tables.secrets).where(tables.secrets.c.owner == bindparam("o"))
_FILE: Final = delete(tables.job_files).where(
    tables.job_files.c.job == bindparam("j"), ~exists().where(tables.jobs.c.array_parent == bindparam("j"))
)
_FILE_SECRETS: Final = delete(tables.secrets).where(
    tables.secrets.c.owner == bindparam("o"), ~exists().where(tables.jobs.c.array_parent == bindparam("j"))
)
"""The secrets of an array's file. An array has one file, which goes with the last of its jobs."""
_FORGOTTEN: Final = delete(tables.history).where(tables.history.c.job == bindparam("j"))


def remove_jobs(transaction: Transaction, jobs: Sequence[JobId], at: float | None = None) -> None:
    """Move each job's summary into the history and delete all its other rows.

    `at` is the time of removal, by default the time at which the job was created.
    """
    keep_usage(transaction, jobs)
    job, run = tables.jobs, tables.job_runs
    when = job.c.created_at if at is None else literal(at)
    line = (
        select(job.c.id, job.c.user, job.c.queue, job.c.ended_at, when, run.c.summary)
        .join(run, run.c.job == job.c.id)
        .where(job.c.id.in_(list(jobs)))
    )
    transaction.write(_FORGOTTEN, [{"j": each} for each in jobs])
    columns = ["job", "user", "queue", "ended_at", "removed_at", "summary"]
    transaction.write(insert(tables.history).from_select(columns, line))
    parents = select(job.c.id, job.c.array_parent).where(job.c.id.in_(list(jobs)))
    files = dict.fromkeys(row.array_parent or row.id for row in transaction.read(parents))
    for each in jobs:
        drop_caches(transaction, scope=CacheScope("job", each).text)
    for statement in _deletes():
        transaction.write(statement, [{"j": each} for each in jobs])
    transaction.write(removal_with_job(), [{"j": each} for each in jobs])
    transaction.write(_SECRETS, [{"o": f"job:{each}"} for each in jobs])
    if files:
        transaction.write(_FILE, [{"j": each} for each in files])
        transaction.write(_FILE_SECRETS, [{"j": each, "o": file_owner(each)} for each in files])


@cache
def _deletes() -> tuple[Delete, ...]:
    """Statements that delete a job's rows in the tables of the store and of tenants."""
    own = ((column.table, column) for each in tenant_tables().values() for column in each.by_job)
    return tuple(delete(table).where(column == bindparam("j")) for table, column in (*_PARTS, *own))
