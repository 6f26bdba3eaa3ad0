"""Explain why a job is in its state, and what would let a waiting one start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from corral.kernel.errors import Unavailable
from corral.kernel.units import counted as number_of
from corral.model.estimate_views import estimate_view
from corral.model.facts import TASK_NOTED
from corral.model.input_bytes import note_in_words
from corral.model.messages import array_index, held_by_array, waits_for_jobs
from corral.model.records import (
    JobSummary,
)
from corral.model.start_estimates import Estimate
from corral.model.store_writes import JobRecord
from corral.model.views import ChangeView, Explanation, ReasonsView, ReasonView
from corral.service.access.priority_limit import priority_limit
from corral.service.access.rules import Resource, decide
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.job_detail import (
    by_name,
    jobs_named,
    reasons_view,
    stored_reasons,
)
from corral.service.jobs.receipts import Receipts
from corral.service.people.authentication import Authentication

_MOST_NAMED: Final = 5


class Explanations:
    """Explain jobs' states."""

    def __init__(self, context: Context, receipts: Receipts, authentication: Authentication) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._receipts = receipts
        self._authentication = authentication

    async def explain(self, actor: Actor, ref: str) -> Explanation:
        """Explain the job's state; for a waiting job the scheduler computes the reasons anew.

        Raises Unavailable when the job waits and no control answers.
        """
        record, _ = await self._context.job_for(actor, ref, "job.read")
        explanation = await self._explained(actor, record)
        if not (record.live and record.run.yields):
            return explanation
        away = tuple(receipt for receipt in await self._receipts.latest(record, 10) if receipt.state == "away")
        return msgspec.structs.replace(explanation, receipts=away)

    async def _explained(self, actor: Actor, record: JobRecord) -> Explanation:
        if record.phase in ("starting", "running") and any(role.waiting for role in record.run.roles.values()):
            return await self._explain_growth(record)
        if record.phase == "starting":
            message = await self._starts_late(record)
            return Explanation(record.id, record.phase, message, stored_reasons(record))
        if record.phase != "waiting" or record.run.hold in ("suspended", "budget"):
            return Explanation(record.id, record.phase, _standing(record), stored_reasons(record))
        if record.run.hold == "dependency":
            return await self._explain_dependencies(actor, record)
        answer = await self._context.control.request(f"/explain/{record.id}")
        reasons = stored_reasons(record) if answer is None else reasons_view(answer)
        hopes = answer.get("outlook") if answer else None
        changes = msgspec.convert(hopes["changes"], tuple[ChangeView, ...]) if hopes else ()
        changes = await self._allowed_changes(record, changes)
        told = [reasons.binding.message] if reasons is not None else []
        named = await self._summaries(jobs_named([*told, *(change.message for change in changes)])[:_MOST_NAMED])
        message = by_name(reasons.binding.message, named) if reasons is not None else "It is about to be placed."
        ahead = await self._summaries(answer.get("before", ()) if answer else ())
        explanation = Explanation(record.id, record.phase, message, reasons, ahead)
        if hopes is None:
            return explanation
        after = await self._summaries(hopes["estimate"]["after"][:_MOST_NAMED])
        estimate = estimate_view(msgspec.convert(hopes["estimate"], Estimate), after, self._clock.now())
        changes = tuple(msgspec.structs.replace(each, message=by_name(each.message, named)) for each in changes)
        return msgspec.structs.replace(explanation, estimate=estimate, changes=changes)

    async def _starts_late(self, record: JobRecord) -> str:
        """The standing of a job that starts, with the last cause of delay that its engine told of this attempt."""
        standing, attempt = _standing(record), f"{record.id}.{record.run.attempt}."
        told = await self._store.events_of(record.id, kinds=(TASK_NOTED,))
        late = next((event.message for event in told if event.attempt.startswith(attempt)), "")
        return f"{standing} Told last: {late}" if late else standing

    async def _explain_growth(self, record: JobRecord) -> Explanation:
        """Explain why a running job still lacks tasks."""
        standing = _standing(record)
        try:
            answer = await self._context.control.request(f"/explain/{record.id}")
        except Unavailable:
            answer = None
        if answer is None:
            return Explanation(record.id, record.phase, standing, stored_reasons(record))
        reasons = reasons_view(answer)
        named = await self._summaries(jobs_named([reasons.binding.message])[:_MOST_NAMED])
        lacking = sum(role.waiting for role in record.run.roles.values())
        waits = "more waits" if lacking == 1 else "more wait"
        message = f"{standing} {lacking} {waits} for room. {by_name(reasons.binding.message, named)}"
        return Explanation(record.id, record.phase, message, reasons, await self._summaries(answer.get("before", ())))

    async def _allowed_changes(self, record: JobRecord, changes: tuple[ChangeView, ...]) -> tuple[ChangeView, ...]:
        """The changes that the job's owner may make: no priority above the maximum, no queue that refuses the job."""
        if not any(change.path in ("priority", "queue") for change in changes):
            return changes
        owner, admission = await self._authentication.job_owner(record), await self._store.admission()

        def allowed(change: ChangeView) -> bool:
            if change.path == "priority":
                return int(change.after) <= priority_limit(owner, record.queue, admission.most_priority).most
            if change.path != "queue":
                return True
            queue = str(change.after)
            resource = Resource("queue", queue, queue=queue, restricted=queue in admission.granted)
            most = priority_limit(owner, queue, admission.most_priority).most
            open_ = decide(owner, "job.submit", resource).allowed and queue not in admission.closed
            return open_ and record.priority <= most

        return tuple(filter(allowed, changes))

    async def _summaries(self, jobs: Iterable[str]) -> tuple[JobSummary, ...]:
        """Summaries of those jobs that still exist."""
        found = [await self._store.find_job(job) for job in jobs]
        return tuple(job.summary for job in found if job is not None)

    async def _explain_dependencies(self, actor: Actor, record: JobRecord) -> Explanation:
        needs = msgspec.json.decode(record.doc)["spec"].get("dependsOn", ())
        conditions = {need["job"]: need.get("condition", "succeeded") for need in needs}
        found = [await self._store.find_job(job, actor.user) for job in conditions]
        awaited = [other.summary for other in found if other is not None and other.live]
        mates = [job for job in found if job is not None and job.live and record.array_parent == job.array_parent != ""]
        named = [(f"{job.name} ({job.state})", conditions[job.id]) for job in awaited[:_MOST_NAMED]]
        message = waits_for_jobs(named, len(awaited) - len(named))
        if not awaited:
            message = "It is about to be queued: the jobs that it depends on are over."
        if mates and len(mates) == len(awaited):
            message = held_by_array(mates[0].name, array_index(record.name) - array_index(mates[0].name))
        reasons = ReasonsView(ReasonView("dependency", message), ahead=len(awaited))
        return Explanation(record.id, record.phase, message, reasons, tuple(awaited))


def _standing(record: JobRecord) -> str:
    ended, near = record.summary.exit, note_in_words(record.run.notes)
    match record.phase:
        case "waiting" if record.run.hold == "budget":
            return record.summary.waiting.message if record.summary.waiting is not None else "Its budget is used up."
        case "waiting":
            return "It is suspended until it is resumed."
        case "running":
            tasks = record.summary.tasks
            standing = f"It runs: {tasks.running} of {number_of(tasks.total, 'task')}."
            return f"{standing} {near}" if near else standing
        case "starting":
            standing = "Its devices are allocated and its tasks are starting."
            return f"{standing} {near}" if near else standing
        case "stopping":
            return "Its tasks are being ended."
        case _ if ended is not None:
            return f"It has {record.phase}: {ended.phrase} ({ended.code}). {ended.message}".strip()
        case _:
            return f"It has {record.phase}."
