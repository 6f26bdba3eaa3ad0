"""Turn old jobs into lines of history, and delete expired records, so that the store stays small."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import delete, func, select

from corral.kernel.ids import JobId
from corral.model.records import JobSummary, Page
from corral.store import tables
from corral.store.control_writes import check_epoch
from corral.store.database import Database, rows
from corral.store.job_removal import remove_jobs
from corral.store.job_writes import IDEMPOTENCY_SECONDS
from corral.store.paging import bounded, read_cursor, write_cursor
from corral.store.writer import Transaction

_SUMMARY: Final = msgspec.json.Decoder(JobSummary)
_BLOB: Final = re.compile(r'"blob:([0-9a-f]{64})"')
_DOCUMENTS_AT_ONCE: Final = 500
INCREMENTAL: Final = 2
"""SQLite's value of `auto_vacuum` for a file whose free pages can be released."""
_PAGES_KEPT: Final = 1024
"""Free pages that stay in the file for later writes: 4 MiB."""
_PAGES_AT_ONCE: Final = 1024
AUDIT_SECONDS: Final = 400 * 86_400.0
"""Seconds for which audit lines are kept."""


class Retention(Database):
    """Turn old jobs into history, and delete expired keys, links, tokens and audit lines."""

    async def retire(self, epoch: int, *, ended_before: float, now: float, limit: int = 200) -> list[JobId]:
        """Remove up to `limit` jobs that ended before `ended_before`, oldest first, and keep their history.

        Returns the removed jobs; call again while it returns `limit`. Jobs that a live job depends on stay. Raises
        LeadershipLost.
        """
        job, needs = tables.jobs, tables.job_dependencies
        needed = select(needs.c.needs).join(job, job.c.id == needs.c.job).where(job.c.live)
        query = (
            select(job.c.id)
            .where(~job.c.live, job.c.ended_at < ended_before, job.c.id.not_in(needed))
            .order_by(job.c.ended_at, job.c.id)
            .limit(limit)
        )

        def run(transaction: Transaction) -> list[JobId]:
            check_epoch(transaction, epoch)
            found = [JobId(row.id) for row in transaction.read(query)]
            if found:
                remove_jobs(transaction, found, now)
                transaction.ring("front")
            return found

        return await self.write(run)

    async def forget_old(self, now: float) -> None:
        """Delete expired idempotency keys, sign-in links, tokens and audit lines."""
        tokens, links = tables.tokens, tables.login_links
        gone: list[Any] = [
            delete(tables.idempotency).where(tables.idempotency.c.at < now - IDEMPOTENCY_SECONDS),
            delete(links).where(links.c.expires_at < now - 86_400),
            delete(tokens).where(tokens.c.expires_at < now - 30 * 86_400),
            delete(tables.audit).where(tables.audit.c.at < now - AUDIT_SECONDS),
        ]

        def run(transaction: Transaction) -> None:
            for statement in gone:
                transaction.write(statement)

        await self.write(run)

    async def give_space_back(self) -> bool:
        """Release up to 4 MiB of SQLite's free pages; returns whether there are more. Does nothing on PostgreSQL."""
        if self.dialect != "sqlite":
            return False

        def run(transaction: Transaction) -> bool:
            connection = transaction.connection

            def figure(name: str) -> int:
                return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())

            spare = figure("freelist_count") - _PAGES_KEPT
            if figure("auto_vacuum") != INCREMENTAL or spare <= 0:
                return False
            for _ in range(min(spare, _PAGES_AT_ONCE)):
                connection.exec_driver_sql("PRAGMA incremental_vacuum(1)")  # the driver steps once: one page a call
            return spare > _PAGES_AT_ONCE

        return await self.write(run)

    async def unused_code(self, before: float) -> list[str]:
        """The digests of code that was last uploaded or used before that time and that no job names."""
        table = tables.blobs
        old = select(table.c.digest).group_by(table.c.digest).having(func.max(table.c.at) < before)
        candidates = await self.read(lambda connection: {row.digest for row in connection.execute(old)})
        after = ""
        while candidates:
            found = await self._documents_with_code(after)
            for row in found:
                candidates.difference_update(_BLOB.findall(row.doc))
            if len(found) < _DOCUMENTS_AT_ONCE:
                break
            after = found[-1].job
        return sorted(candidates)

    async def _documents_with_code(self, after: str) -> list[Any]:
        columns = tables.job_documents.c
        named = select(columns.job, columns.doc).where(columns.job > after, columns.doc.like('%"blob:%'))
        page = named.order_by(columns.job).limit(_DOCUMENTS_AT_ONCE)
        return list(await self.read(lambda connection: rows(connection, page)))

    async def forget_code(self, digests: Sequence[str], before: float) -> list[str]:
        """Delete the records of digests that were not used again since `before`; returns the deleted ones."""
        table = tables.blobs
        again = select(table.c.digest).where(table.c.digest.in_(digests), table.c.at >= before)

        def run(transaction: Transaction) -> list[str]:
            used = {row.digest for row in transaction.read(again)}
            gone = [digest for digest in digests if digest not in used]
            transaction.write(delete(table).where(table.c.digest.in_(gone)))
            return gone

        return await self.write(run)

    async def history(self, *, limit: int = 100, after_cursor: str = "", user: str = "") -> Page[JobSummary]:
        """One page of the removed jobs, newest first."""
        table = tables.history
        query = select(table.c.job, table.c.summary).order_by(table.c.job.desc()).limit(bounded(limit) + 1)
        key = read_cursor(after_cursor, (str,))
        if key is not None:
            query = query.where(table.c.job < key[0])
        if user:
            query = query.where(table.c.user == user)
        found = await self.read(lambda connection: rows(connection, query))
        shown = found[: bounded(limit)]
        more = write_cursor((shown[-1].job,)) if len(found) > len(shown) else None
        return Page([_SUMMARY.decode(row.summary) for row in shown], more)
