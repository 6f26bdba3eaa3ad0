"""Stop, restart, scale, suspend, resume and delete jobs."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, InvalidInput
from corral.model.store_writes import IntentKind, JobRecord
from corral.model.views import JobDetail
from corral.service.access.job_access import job_resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.jobs import Jobs
from corral.service.usage.budgets import Budgets
from corral.spec.job import UnifiedJob

_STOP_SECONDS: Final = 60.0
"""Most seconds that a delete with `stop` waits for the job to end."""
_LOOK_SECONDS: Final = 0.2
_REMOVAL_PAUSES: Final = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, *(0.2,) * 23)
"""Seconds between the looks of a delete whether control has removed the job."""


class JobCommands:
    """Requests to change stored jobs; control carries them out."""

    def __init__(self, context: Context, jobs: Jobs, budgets: Budgets) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._jobs = jobs
        self._budgets = budgets

    async def stop(self, actor: Actor, ref: str) -> JobDetail:
        """Ask control to stop the job.

        Raises Conflict `job-over`.
        """
        record, decision = await self._context.job_for(actor, ref, "job.stop")
        if not record.live:
            raise Conflict("job-over", f"Job {record.name} is over already ({record.phase}).")
        return await self.intend(actor, record, "job.stop", IntentKind.STOP, {}, decision)

    async def restart(self, actor: Actor, ref: str) -> JobDetail:
        """Ask control to restart the job.

        Raises TooManyRequests if the job is over and its user would have too many tasks, Conflict `budget-used-up`.
        """
        record, decision = await self._context.job_for(actor, ref, "job.restart")
        if not record.live:
            document = UnifiedJob.from_document(msgspec.json.decode(record.doc))
            await self._budgets.check_change(record.user, None, document)
        line, at = self._context.line(actor, "job.restart", job_resource(record), decision), self._clock.now()
        await self._store.restart(
            record.id, actor=actor.user, at=at, audit=line, most_tasks=self._context.allowance.tasks
        )
        return await self._jobs.detail(actor, record)

    async def scale(
        self, actor: Actor, ref: str, *, replicas: int, role: str = "", by_object: bool = False
    ) -> JobDetail:
        """Ask for another number of replicas of the counted role.

        A job created from a Kubernetes object is scaled through the object, unless `by_object`: then the object has the
        number already.

        Raises SpecError outside of the document's bounds, InvalidInput for another role, Conflict `job-over`,
        TooManyRequests when the job's user would have too many tasks.
        """
        record, decision = await self._context.job_for(actor, ref, "job.scale")
        if not record.live:
            raise Conflict("job-over", f"Job {record.name} is over already ({record.phase}).")
        document = UnifiedJob.from_document(msgspec.json.decode(record.doc))
        counted = document.counted_role.name
        if role and role != counted:
            raise InvalidInput("role-not-counted", f"Only role {counted} of this job can be scaled.")
        document.check_sizes({counted: replicas})
        data = {"role": counted, "replicas": replicas}
        sizes, asked, most = (
            {counted: replicas},
            {counted: document.replicas_of(counted)},
            self._context.allowance.tasks,
        )
        if not by_object and await self._asked_its_object(actor, record, sizes, asked):
            await self._context.note(actor, "job.scale", job_resource(record), decision, **data)
            return await self._jobs.detail(actor, record)
        line, at = self._context.line(actor, "job.scale", job_resource(record), decision, **data), self._clock.now()
        await self._store.scale(record.id, sizes, asked=asked, actor=actor.user, at=at, audits=[line], most_tasks=most)
        return await self._jobs.detail(actor, record)

    async def suspend(self, actor: Actor, ref: str) -> JobDetail:
        """Stop the job with its checkpoint signal, and hold it until it is resumed.

        Raises Conflict `job-over`, `job-suspended`.
        """
        record, decision = await self._context.job_for(actor, ref, "job.suspend")
        self._refuse_ended(record)
        if record.run.suspended:
            raise Conflict("job-suspended", f"Job {record.name} is suspended already.")
        return await self.intend(actor, record, "job.suspend", IntentKind.SUSPEND, {}, decision)

    async def resume(self, actor: Actor, ref: str) -> JobDetail:
        """Resume a suspended job; it waits in its old place.

        Raises Conflict `job-over`, or `budget-used-up` for one that only its budget holds.
        """
        record, decision = await self._context.job_for(actor, ref, "job.resume")
        self._refuse_ended(record)
        if record.run.over_budget and not record.run.suspended:
            held = f"Job {record.name} is held, because {record.run.over_budget}; it goes on by itself."
            raise Conflict("budget-used-up", held)
        return await self.intend(actor, record, "job.resume", IntentKind.RESUME, {}, decision)

    async def delete(self, actor: Actor, ref: str, *, stop: bool = False) -> None:
        """Remove a job that is over; with `stop` a live job is stopped first.

        Returns when control has removed it. Where no control leads, or it takes more than 5 s, it is removed later.

        Raises Conflict `job-live`, or `still-stopping` when it has not ended after 60 s.
        """
        record, decision = await self._context.job_for(actor, ref, "job.delete")
        if record.live:
            if not stop:
                raise Conflict(
                    "job-live",
                    f"Job {record.name} is not over; stop it first, or ask for both (`corral rm --stop`, stop=true).",
                )
            await self._store.add_intent(record.id, IntentKind.STOP, {}, actor=actor.user, at=self._clock.now())
            await self._await_end(record)
        line = self._context.line(actor, "job.delete", job_resource(record), decision, name=record.name)
        await self._store.add_intent(record.id, IntentKind.DELETE, actor=actor.user, at=self._clock.now(), audit=line)
        for pause in _REMOVAL_PAUSES:
            if await self._store.leader() is None or await self._store.find_job(record.id) is None:
                return
            await asyncio.sleep(pause)

    async def intend(
        self, actor: Actor, record: JobRecord, action: str, kind: IntentKind, data: dict[str, Any], decision: Any
    ) -> JobDetail:
        """Store a request for control about a job, with its audit-log line."""
        line = self._context.line(actor, action, job_resource(record), decision, **data)
        await self._store.add_intent(record.id, kind, data, actor=actor.user, at=self._clock.now(), audit=line)
        return await self._jobs.detail(actor, record)

    async def _asked_its_object(
        self, actor: Actor, record: JobRecord, sizes: dict[str, int], asked: dict[str, int]
    ) -> bool:
        """Scale the Kubernetes object that the job was created from; False if there is none or it is gone.

        Raises Unavailable when the cluster that has the object does not answer, TooManyRequests for too many tasks.
        """
        if await self._store.object_of(record.id) is None:
            return False
        await self._store.check_scale(record.id, sizes, asked, self._context.allowance.tasks)
        (replicas,) = sizes.values()
        body = {"replicas": replicas, "actor": actor.user}
        return bool(await self._context.control.request(f"/objects/{record.id}/scale", body))

    async def _await_end(self, record: JobRecord) -> None:
        deadline = self._clock.now() + _STOP_SECONDS
        while self._clock.now() < deadline:
            now = await self._store.find_job(record.id)
            if now is None or not now.live:
                return
            await asyncio.sleep(_LOOK_SECONDS)
        raise Conflict("still-stopping", f"Job {record.name} is still stopping; delete it once it is over.")

    def _refuse_ended(self, record: JobRecord) -> None:
        if not record.live:
            raise Conflict("job-over", f"Job {record.name} is over already ({record.phase}).")
