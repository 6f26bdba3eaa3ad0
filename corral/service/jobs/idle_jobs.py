"""Jobs that leave their devices idle: who is told of them, and who asks for more time."""

from __future__ import annotations

from typing import Final

import msgspec

from corral.kernel.errors import Conflict, InvalidInput
from corral.model.configuration import IN_FORCE, read_revision
from corral.model.idle.machine import IdleState, Spell
from corral.model.idle.records import IdleJob, IdleList
from corral.model.records import rfc3339
from corral.model.store_writes import JobRecord
from corral.service.access.job_access import job_resource
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.spec.idle_rule import IdleRule
from corral.spec.policy import PolicyDocument
from corral.store.idle_records import IdleRow

_LONGEST_REASON: Final = 500
"""Characters."""
_DEEPEST: Final = 100
_WEEK: Final = 7 * 86_400.0


class _Spec(msgspec.Struct, rename="camel"):
    """The part of a job's document that is read here."""

    idle_seconds: int = 0


class _Document(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_DOCUMENT: Final = msgspec.json.Decoder(_Document)


class IdleJobs:
    """Jobs with idle devices."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def list(self, actor: Actor, *, job: str = "") -> IdleList:
        """The jobs with idle devices now or in the last week whose owners were warned, the largest waste first.

        Administrators see all, managers those of their queues too, and others their own. `job` is the id of the only one
        that is asked about.
        """
        await self._context.check(actor, "job.list", Resource("job"))
        now = self._context.clock.now()
        rows = await self._store.idle_rows(since=now - _WEEK, job=job)
        seen = [idle_view(row, now) for row in rows if _may_see(actor, row)]
        return IdleList(tuple(sorted(seen, key=lambda each: (-each.wasted_device_seconds, each.job))))

    async def extend(self, actor: Actor, ref: str, reason: str) -> IdleJob:
        """Give a job whose owner was warned as much time again as its own `idle` or its queue allows, once.

        Raises InvalidInput without a reason, Conflict `not-warned`, `idle-extended`, `job-over`.
        """
        record, decision = await self._context.job_for(actor, ref, "job.extend-idle")
        why = " ".join("".join(each if each.isprintable() else " " for each in reason).split())
        if not why or len(why) > _LONGEST_REASON:
            raise InvalidInput("bad-reason", f"Say why, in at most {_LONGEST_REASON} characters.")
        if not record.live:
            raise Conflict("job-over", f"Job {record.name} is over already ({record.phase}).")
        now, rule = self._context.clock.now(), await self._rule(record)
        line = self._context.line(actor, "job.extend-idle", job_resource(record), decision, why=why)
        own = _DOCUMENT.decode(record.doc).spec.idle_seconds
        seconds = float(own or (rule.for_seconds if rule is not None else 0))
        spell = await self._store.extend_idle(record.id, seconds, why, now, actor=actor.user, audit=line)
        return idle_view(IdleRow(record.id, record.name, record.user, record.queue, True, spell), now)

    async def _rule(self, record: JobRecord) -> IdleRule | None:
        """The rule of the job's queue, of the nearest queue above it, or of the policy."""
        queues = {each.name: each.doc for each in await self._store.queues()}
        at = record.queue
        for _ in range(_DEEPEST):
            if at not in queues:
                break
            if (said := queues[at].get("idle")) is not None:
                return IdleRule.model_validate(said)
            at = queues[at].get("parent", "")
        revision = await self._store.document("Policy", IN_FORCE)
        if revision is None or revision.deleted:
            return None
        policy = read_revision(revision)
        return policy.idle if isinstance(policy, PolicyDocument) else None


def _may_see(actor: Actor, row: IdleRow) -> bool:
    if actor.is_admin or row.spell.dry_run:
        return actor.is_admin
    return row.user == actor.user or row.queue in actor.manages or "*" in actor.manages


def idle_view(row: IdleRow, now: float) -> IdleJob:
    """One row in the API's form."""
    spell = row.spell
    return IdleJob(
        job=row.job,
        name=row.name,
        user=row.user,
        queue=row.queue,
        state=spell.state,
        since=_time(spell.since) if spell.state != IdleState.BUSY else None,
        idle=spell.idle,
        held=spell.held,
        wasted_device_seconds=round(wasted(spell, now), 3),
        warned_at=_time(spell.warned_at),
        acted_at=_time(spell.acted_at),
        extended_at=_time(spell.extended_at),
        extended_until=_time(spell.extended_until),
        reason=spell.reason,
        dry_run=spell.dry_run,
        action=spell.action,
        acts_at=_time(spell.acts_at),
    )


def wasted(spell: Spell, now: float) -> float:
    """Device-seconds that a job wasted; after an action that takes its devices nothing more."""
    return spell.wasted(spell.acted_at if spell.acted_at and not spell.dry_run else now)


def _time(seconds: float) -> str | None:
    return rfc3339(seconds) if seconds else None
