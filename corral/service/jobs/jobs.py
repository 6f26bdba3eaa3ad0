"""Views of stored jobs, their tasks and attempts."""

from __future__ import annotations

from typing import Any

import msgspec

from corral.kernel.errors import InvalidInput, NotFound
from corral.model.records import (
    ENDED_PHASES,
    LIVE_PHASES,
    AttemptRecord,
    JobFilter,
    JobSummary,
    Page,
    TaskRecord,
)
from corral.model.store_writes import JobRecord
from corral.model.views import JobDetail, PlacementRecord
from corral.service.access.job_access import allowed_to, job_resource
from corral.service.access.rules import Resource, decide
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.job_detail import (
    PLACEMENT_LIMIT,
    document_of,
    job_detail,
    placement_records,
)
from corral.service.jobs.receipts import Receipts
from corral.spec.short_form_writer import shortened
from corral.workers.pool import INLINE_BYTES


class Jobs:
    """Views of stored jobs."""

    def __init__(self, context: Context, receipts: Receipts) -> None:
        self._context = context
        self._store = context.store
        self._receipts = receipts

    async def page(self, actor: Actor, wanted: JobFilter, *, limit: int = 50, after: str = "") -> Page[JobSummary]:
        """One page of jobs.

        Raises InvalidInput `unknown-state` for a state that does not exist.
        """
        await self._context.check(actor, "job.list", Resource("job"))
        for phase in wanted.phases:
            if phase not in (*LIVE_PHASES, *ENDED_PHASES):
                raise InvalidInput(
                    "unknown-state", f"A job's state is one of {', '.join((*LIVE_PHASES, *ENDED_PHASES))}."
                )
        return await self._store.list_jobs(wanted, limit=limit, after_cursor=after)

    async def history(self, actor: Actor, *, user: str = "", limit: int = 50, after: str = "") -> Page[JobSummary]:
        """One page of the history of removed and retired jobs, the latest first."""
        await self._context.check(actor, "job.list", Resource("job"))
        return await self._store.history(limit=limit, after_cursor=after, user=user)

    async def get(self, actor: Actor, ref: str) -> JobDetail:
        """The detail view of one job."""
        record, _ = await self._context.job_for(actor, ref, "job.read")
        return await self.detail(actor, record)

    async def document(self, actor: Actor, ref: str, *, short: bool = False) -> dict[str, Any]:
        """The canonical document, or its short form; without environment values unless the actor may read them."""
        record, _ = await self._context.job_for(actor, ref, "job.read")
        document = document_of(record, hide=not _may_read_environment(actor, record))
        return (
            await self._context.run_in_worker(len(record.doc) <= INLINE_BYTES, shortened, document)
            if short
            else document
        )

    async def tasks(
        self, actor: Actor, ref: str, *, role: str = "", state: str = "", limit: int = 100, after: str = ""
    ) -> Page[TaskRecord]:
        """One page of the job's tasks."""
        record, _ = await self._context.job_for(actor, ref, "job.read")
        states = (state,) if state else ()
        return await self._store.job_tasks(record.id, role=role, states=states, limit=limit, after_cursor=after)

    async def attempts(
        self, actor: Actor, ref: str, role: str, index: int, *, limit: int = 100, after: str = ""
    ) -> Page[AttemptRecord]:
        """One page of a task's attempts, the latest first."""
        record, _ = await self._context.job_for(actor, ref, "job.read")
        return await self._store.job_attempts(record.id, role, index, limit=limit, after_cursor=after)

    async def placement(self, actor: Actor, ref: str, *, limit: int = 500, after: str = "") -> Page[PlacementRecord]:
        """One page of the placements of the job's tasks."""
        record, _ = await self._context.job_for(actor, ref, "job.read")
        page = await self._store.job_tasks(record.id, limit=limit, after_cursor=after)
        members = await self._store.job_members(record.id)
        return Page(list(placement_records(msgspec.json.decode(record.doc), page.items, members)), page.next)

    async def owner_of(self, job: str) -> str:
        """The owner of a job.

        Raises NotFound.
        """
        owner = await self._store.owner_of(job)
        if owner is None:
            raise NotFound("job-not-found", f"There is no job {job[:100]}.")
        return owner

    async def detail(self, actor: Actor, record: JobRecord) -> JobDetail:
        """The detail view of a job that the actor may read."""
        tasks, members = await self._store.tasks_and_members(record.id, PLACEMENT_LIMIT)
        receipts = await self._receipts.latest(record, 10) if record.run.yields else ()
        hide = not _may_read_environment(actor, record)
        allowed = allowed_to(actor, record)
        if record.phase == "waiting" and "edit" in allowed and await self._store.object_of(record.id) is not None:
            allowed = tuple(word for word in allowed if word != "edit")  # its object defines its terms
        return job_detail(record, tasks, hide=hide, members=members, receipts=receipts, allowed=allowed)


def _may_read_environment(actor: Actor, record: JobRecord) -> bool:
    return decide(actor, "job.environment", job_resource(record)).allowed
