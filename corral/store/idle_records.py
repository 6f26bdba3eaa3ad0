"""Jobs that leave their devices idle. A row is open while its job has not ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import delete, select

from corral.kernel.errors import Conflict
from corral.kernel.ids import JobId
from corral.model.accounts import AuditWrite
from corral.model.idle.machine import Spell, extended
from corral.model.store_writes import IntentKind
from corral.store import tables
from corral.store.audit import write_audit
from corral.store.database import Database, rows
from corral.store.job_writes import add_intents
from corral.store.rows import add_events, encode, event_row, put
from corral.store.writer import Transaction

_idle, _jobs = tables.idle_jobs, tables.jobs
_SPELL: Final = msgspec.json.Decoder(Spell)
KEPT_SECONDS: Final = 35 * 86_400.0
"""Seconds for which the rows of ended jobs are kept, for weekly reports."""
MOST_LISTED: Final = 1_000
_EXTENDED: Final = "job.idle-extended"


class IdleChange(NamedTuple):
    """What a look at a job changes: its row, and what is told and asked for with it."""

    job: JobId
    before: Spell | None
    """The row as it was read; None: there is none. A row that was changed since is left as it is."""
    after: Spell
    open: bool = True
    event: tuple[str, str] | None = None
    """An event of the job: its kind and message."""
    intent: tuple[IntentKind, dict[str, object]] | None = None
    audit: AuditWrite | None = None


class IdleRow(NamedTuple):
    """One job with its spell."""

    job: str
    name: str
    user: str
    queue: str
    open: bool
    spell: Spell


class IdleRecords(Database):
    """Spells of idle devices. Times are in seconds since 1970."""

    async def open_spells(self) -> dict[JobId, Spell]:
        """The spells of jobs that have not ended."""
        query = select(_idle.c.job, _idle.c.doc).where(_idle.c.open)
        return {JobId(row.job): _SPELL.decode(row.doc) for row in await self.read(lambda reader: rows(reader, query))}

    async def idle_rows(
        self, *, since: float = 0.0, user: str = "", queues: Sequence[str] | None = None, job: str = ""
    ) -> list[IdleRow]:
        """At most a thousand jobs with a spell that changed at `since` or later, or is open; the latest first.

        Of one user, of some queues, or of one job, if these are named.
        """
        query = (
            select(_jobs.c.id, _jobs.c.name, _jobs.c.user, _jobs.c.queue, _idle.c.open, _idle.c.doc)
            .join(_jobs, _jobs.c.id == _idle.c.job)
            .where(_idle.c.open | (_idle.c.at >= since))
            .order_by(_idle.c.at.desc(), _jobs.c.id)
            .limit(MOST_LISTED)
        )
        if user:
            query = query.where(_jobs.c.user == user)
        if job:
            query = query.where(_idle.c.job == job)
        if queues is not None:
            query = query.where(_jobs.c.queue.in_(list(queues)))
        found = await self.read(lambda reader: rows(reader, query))
        return [IdleRow(row.id, row.name, row.user, row.queue, row.open, _SPELL.decode(row.doc)) for row in found]

    async def keep_idle(self, changes: Sequence[IdleChange], now: float, *, actor: str) -> list[IdleChange]:
        """Store changes with their events and intents in one transaction; returns those that were stored."""

        def run(transaction: Transaction) -> list[IdleChange]:
            known = _docs(transaction, [each.job for each in changes])
            stored = [each for each in changes if known.get(each.job) == (each.before and encode(each.before))]
            put_rows = [_row(each, now) for each in stored]
            if put_rows:
                put(transaction, _idle, put_rows)
            told = [event_row(each.job, now, *each.event, actor=actor) for each in stored if each.event is not None]
            if told:
                add_events(transaction, told)
                transaction.ring("front")
            for each in stored:
                if each.intent is not None:
                    kind, data = each.intent
                    add_intents(transaction, each.job, kind, [data], actor, now, [each.audit])
            transaction.write(delete(_idle).where(~_idle.c.open, _idle.c.at < now - KEPT_SECONDS))
            return stored

        return await self.write(run)

    async def extend_idle(
        self, job: JobId, seconds: float, reason: str, now: float, *, actor: str, audit: AuditWrite | None
    ) -> Spell:
        """Give a job whose owner was warned more time.

        Raises Conflict `not-warned`, or `idle-extended` for a second time.
        """

        def run(transaction: Transaction) -> Spell:
            doc = _docs(transaction, [job]).get(job)
            spell = Spell() if doc is None else _SPELL.decode(doc)
            after = extended(spell, seconds, reason, now)
            if after is None and spell.extended_at:
                raise Conflict("idle-extended", "The job was given more time before; that is done once.")
            if after is None:
                raise Conflict("not-warned", "The job's owner was not warned of idle devices.")
            put(transaction, _idle, [_row(IdleChange(job, spell, after), now)])
            add_events(
                transaction, [event_row(job, now, _EXTENDED, f"{actor} asked for more time: {reason}", actor=actor)]
            )
            write_audit(transaction, audit)
            transaction.ring("front")
            return after

        return await self.write(run)


def _docs(transaction: Transaction, jobs: Sequence[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for at in range(0, len(jobs), 500):
        query = select(_idle.c.job, _idle.c.doc).where(_idle.c.job.in_(list(jobs[at : at + 500])))
        found |= {row.job: row.doc for row in transaction.read(query).all()}
    return found


def _row(change: IdleChange, now: float) -> dict[str, Any]:
    return {"job": change.job, "open": change.open, "at": now, "doc": encode(change.after)}
