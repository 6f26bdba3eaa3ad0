"""Change the priority, maxDuration or queue of a waiting job; its submission time stays.

The new terms pass the same checks as a submission. Control applies them if the job still waits.
"""

from __future__ import annotations

from typing import Any

import msgspec

from corral.kernel.errors import Conflict, Forbidden, InvalidInput
from corral.kernel.units import parse_duration
from corral.model.job_edits import Edit, EditView, edited_fields
from corral.model.store_writes import IntentKind, JobRecord
from corral.service.access.job_access import job_resource
from corral.service.access.priority_limit import check_priority
from corral.service.access.rules import Resource, decide
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.feasibility import Feasibility
from corral.service.jobs.job_rule import JobRules
from corral.service.people.authentication import Authentication
from corral.service.usage.budgets import Budgets
from corral.spec.job import UnifiedJob


class JobEditor:
    """Edit waiting jobs."""

    def __init__(
        self,
        context: Context,
        authentication: Authentication,
        feasibility: Feasibility,
        rules: JobRules,
        budgets: Budgets,
    ) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._authentication = authentication
        self._feasibility = feasibility
        self._rules = rules
        self._budgets = budgets

    async def edit(
        self,
        actor: Actor,
        ref: str,
        *,
        priority: str | int | None = None,
        max_duration: str | int | None = None,
        queue: str | None = None,
        wait_for_capacity: bool = False,
        dry_run: bool = False,
    ) -> EditView:
        """Change the priority, maxDuration or queue of a waiting job, which keeps its submission time.

        Raises Conflict `job-not-waiting`, `follows-object`, `counted-in-cells`, `impossible-request` or
        `budget-used-up`; InvalidInput; SpecError; Forbidden above a maxPriority, or in a queue that is closed to the
        job's owner.
        """
        record, decision = await self._context.job_for(actor, ref, "job.edit")
        if priority is None and max_duration is None and queue is None:
            raise InvalidInput("nothing-to-change", "Name at least one change: priority, maxDuration or queue.")
        await self._refuse_fixed(record)
        before = UnifiedJob.from_document(msgspec.json.decode(record.doc))
        after = _with_terms(before, priority, max_duration, queue)
        await self._check_terms(actor, record, before, after, wait_for_capacity=wait_for_capacity)
        view = EditView(record.id, record.name, edited_fields(before, after), dry_run)
        if dry_run or not view.changes:
            return view
        spec, named = after.spec, {change.field for change in view.changes}
        edit = Edit(
            spec.priority if "priority" in named else None,
            spec.max_duration_seconds if "maxDuration" in named else None,
            spec.queue if "queue" in named else None,
        )
        told = {each.field: {"from": each.before, "to": each.after} for each in view.changes}
        line, at = self._context.line(actor, "job.edit", job_resource(record), decision, **told), self._clock.now()
        data: dict[str, object] = msgspec.to_builtins(edit)
        data["judged"] = {"queue": before.spec.queue, "priority": before.priority}
        await self._store.add_intent(record.id, IntentKind.EDIT, data, actor=actor.user, at=at, audit=line)
        return view

    async def _refuse_fixed(self, record: JobRecord) -> None:
        if record.phase != "waiting":
            message = (
                f"Job {record.name} does not wait ({record.phase}); only waiting jobs take other terms (priority, "
                "maxDuration, queue)."
            )
            raise Conflict("job-not-waiting", message)
        if (link := await self._store.object_of(record.id)) is not None:
            message = (
                f"Job {record.name} follows the object {link.ref}; delete that and apply it again with other terms."
            )
            raise Conflict("follows-object", message)

    async def _check_terms(
        self, actor: Actor, record: JobRecord, before: UnifiedJob, after: UnifiedJob, *, wait_for_capacity: bool
    ) -> None:
        """Check new terms like a submission by the job's owner, or by an administrator who edits."""
        admission, queue = await self._store.admission(), after.spec.queue
        moves = queue != before.spec.queue
        owner = await self._authentication.job_owner(record)
        own = decide(actor, "job.restart", job_resource(record)).allowed
        bound = actor if own else owner
        rises = after.priority > before.priority
        if moves and not own and not decide(actor, "job.order", Resource("queue", queue, queue=queue)).allowed:
            message = (
                f"{actor.user} does not manage the queue {queue}, so only the job's owner and administrators may move "
                f"{record.name} there."
            )
            raise Forbidden("not-allowed", message, rule="managers-only")
        if moves:
            await self._feasibility.check_queue(bound, after, admission, by=actor)
        if moves or rises:
            check_priority(bound, after.priority, queue, admission.most_priority)
        if moves or after.spec.max_duration_seconds != before.spec.max_duration_seconds:
            await self._budgets.check_change(record.user, before, after)
        if not moves and not (rises and before.priority < 0):
            return  # checked against this queue already; a job below 0 was opportunistic and promised less
        await self._rules.check_edit(after, admission)
        obstacle = await self._feasibility.obstacle(owner, after, admission, waits=wait_for_capacity)
        if obstacle and not wait_for_capacity:
            message = f"{obstacle} Choose another queue, or edit with --wait-for-capacity."
            raise Conflict("impossible-request", message)


def _with_terms(
    job: UnifiedJob, priority: str | int | None, max_duration: str | int | None, queue: str | None
) -> UnifiedJob:
    """The job with the new terms.

    Raises SpecError, InvalidInput `bad-duration`.
    """
    document = job.to_document()
    spec: dict[str, Any] = document["spec"]
    if priority is not None:
        spec["priority"] = str(priority)
    if max_duration is not None:
        spec["maxDurationSeconds"] = _seconds(max_duration)
    if queue is not None:
        spec["queue"] = queue
    return UnifiedJob.from_document(document, filename="")


def _seconds(duration: str | int) -> int:
    try:
        return parse_duration(str(duration))
    except ValueError as error:
        shown = str(duration)[:50]
        raise InvalidInput("bad-duration", f"maxDuration: {error}, and 0 for no limit; not {shown!r}.") from None
