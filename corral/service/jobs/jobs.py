"""Operations on stored jobs: list, show, explain, stop, restart, scale, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, InvalidInput, NotFound, Unavailable
from corral.kernel.units import counted as number_of
from corral.model import messages as wording
from corral.model.accounts import Token
from corral.model.messages import array_index, held_by_array, waits_for_jobs
from corral.model.page_bounds import MAX_PAGE, unknown_cursor
from corral.model.receipts import Receipt, ReceiptView, receipt_view
from corral.model.records import (
    ENDED_PHASES,
    LIVE_PHASES,
    AttemptRecord,
    EventRecord,
    JobFilter,
    JobSummary,
    Page,
    TaskRecord,
)
from corral.model.start_estimates import Estimate
from corral.model.store_writes import IntentKind, JobRecord
from corral.model.views import ChangeView, Explanation, JobDetail, PlacementRecord, ReasonsView, ReasonView
from corral.service.access.priority_limit import priority_limit
from corral.service.access.rules import Resource, decide
from corral.service.actor import Actor
from corral.service.base import INLINE_BYTES, ServiceBase, allowed_to, job_resource
from corral.service.jobs.job_detail import (
    PLACEMENT_LIMIT,
    by_name,
    document_of,
    estimate_view,
    job_detail,
    jobs_named,
    placement_records,
    reasons_view,
    stored_reasons,
)
from corral.service.people.sessions import actor_of
from corral.spec.job import UnifiedJob
from corral.spec.short_form_writer import shortened

_STOP_SECONDS: Final = 60.0
"""Most seconds that a delete with `stop` waits for the job to end."""
_LOOK_SECONDS: Final = 0.2
_MOST_NAMED: Final = 5


class Jobs(ServiceBase):
    """Views of stored jobs, and requests to change them."""

    async def list_jobs(self, actor: Actor, wanted: JobFilter, *, limit: int = 50, after: str = "") -> Page[JobSummary]:
        """One page of jobs.

        Raises InvalidInput `unknown-state` for a state that does not exist.
        """
        await self.check(actor, "job.list", Resource("job"))
        for phase in wanted.phases:
            if phase not in (*LIVE_PHASES, *ENDED_PHASES):
                raise InvalidInput(
                    "unknown-state", f"A job's state is one of {', '.join((*LIVE_PHASES, *ENDED_PHASES))}."
                )
        return await self.store.list_jobs(wanted, limit=limit, after_cursor=after)

    async def history(self, actor: Actor, *, user: str = "", limit: int = 50, after: str = "") -> Page[JobSummary]:
        """One page of the history of removed and retired jobs, the latest first."""
        await self.check(actor, "job.list", Resource("job"))
        return await self.store.history(limit=limit, after_cursor=after, user=user)

    async def job(self, actor: Actor, ref: str) -> JobDetail:
        """The detail view of one job."""
        record, _ = await self.job_for(actor, ref, "job.read")
        return await self._detail(actor, record)

    async def _detail(self, actor: Actor, record: JobRecord) -> JobDetail:
        tasks, members = await self.store.tasks_and_members(record.id, PLACEMENT_LIMIT)
        receipts = await self._yielded(record, 10) if record.run.yields else ()
        hide = not _may_read_environment(actor, record)
        allowed = allowed_to(actor, record)
        if record.phase == "waiting" and "edit" in allowed and await self.store.object_of(record.id) is not None:
            allowed = tuple(word for word in allowed if word != "edit")  # its object defines its terms
        return job_detail(record, tasks, hide=hide, members=members, receipts=receipts, allowed=allowed)

    async def _yielded(self, record: JobRecord, limit: int) -> tuple[ReceiptView, ...]:
        """The latest receipts of a job."""
        found = await self.store.receipts(job=record.id, limit=limit)
        return await self._receipt_views(found.items)

    async def _receipt_views(self, receipts: Sequence[Receipt]) -> tuple[ReceiptView, ...]:
        """Receipts as people read them; ids of jobs in stored messages are replaced by names."""
        ids = wording.jobs_named(*(receipt.message for receipt in receipts))
        names, now = await self.store.names_of_jobs(ids) if ids else {}, self.clock.now()
        shown = (receipt_view(receipt, now) for receipt in receipts)
        return tuple(msgspec.structs.replace(each, message=wording.by_name(each.message, names.get)) for each in shown)

    async def job_document(self, actor: Actor, ref: str, *, short: bool = False) -> dict[str, Any]:
        """The canonical document, or its short form; without environment values unless the actor may read them."""
        record, _ = await self.job_for(actor, ref, "job.read")
        document = document_of(record, hide=not _may_read_environment(actor, record))
        return await self.run_in_worker(len(record.doc) <= INLINE_BYTES, shortened, document) if short else document

    async def job_tasks(
        self, actor: Actor, ref: str, *, role: str = "", state: str = "", limit: int = 100, after: str = ""
    ) -> Page[TaskRecord]:
        """One page of the job's tasks."""
        record, _ = await self.job_for(actor, ref, "job.read")
        states = (state,) if state else ()
        return await self.store.job_tasks(record.id, role=role, states=states, limit=limit, after_cursor=after)

    async def task_attempts(
        self, actor: Actor, ref: str, role: str, index: int, *, limit: int = 100, after: str = ""
    ) -> Page[AttemptRecord]:
        """One page of a task's attempts, the latest first."""
        record, _ = await self.job_for(actor, ref, "job.read")
        return await self.store.job_attempts(record.id, role, index, limit=limit, after_cursor=after)

    async def job_events(self, actor: Actor, ref: str, *, limit: int = 200, after: str = "") -> Page[EventRecord]:
        """One page of the job's events in order; `after` is the seq of the last event read.

        Raises InvalidInput `bad-cursor`.
        """
        record, _ = await self.job_for(actor, ref, "job.read")
        if after and not (after.isascii() and after.isdigit() and len(after) < 19):
            raise unknown_cursor()
        found = await self.store.events(int(after or 0), limit + 1 if limit < MAX_PAGE else limit, record.id)
        full = len(found) > limit or (limit >= MAX_PAGE and len(found) == limit)
        more = str(found[limit - 1].seq) if full else None
        return Page(found[:limit], more)

    async def job_placement(
        self, actor: Actor, ref: str, *, limit: int = 500, after: str = ""
    ) -> Page[PlacementRecord]:
        """One page of the placements of the job's tasks."""
        record, _ = await self.job_for(actor, ref, "job.read")
        page = await self.store.job_tasks(record.id, limit=limit, after_cursor=after)
        members = await self.store.job_members(record.id)
        return Page(list(placement_records(msgspec.json.decode(record.doc), page.items, members)), page.next)

    async def explain(self, actor: Actor, ref: str) -> Explanation:
        """Explain the job's state; for a waiting job the scheduler computes the reasons anew.

        Raises Unavailable when the job waits and no control answers.
        """
        record, _ = await self.job_for(actor, ref, "job.read")
        explanation = await self._explained(actor, record)
        if not (record.live and record.run.yields):
            return explanation
        away = tuple(receipt for receipt in await self._yielded(record, 10) if receipt.state == "away")
        return msgspec.structs.replace(explanation, receipts=away)

    async def _explained(self, actor: Actor, record: JobRecord) -> Explanation:
        if record.phase in ("starting", "running") and any(role.waiting for role in record.run.roles.values()):
            return await self._explain_growth(record)
        if record.phase != "waiting" or record.run.hold == "suspended":
            return Explanation(record.id, record.phase, _standing(record), stored_reasons(record))
        if record.run.hold == "dependency":
            return await self._explain_dependencies(actor, record)
        answer = await self.control.request(f"/explain/{record.id}")
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
        estimate = estimate_view(msgspec.convert(hopes["estimate"], Estimate), after, self.clock.now())
        changes = tuple(msgspec.structs.replace(each, message=by_name(each.message, named)) for each in changes)
        return msgspec.structs.replace(explanation, estimate=estimate, changes=changes)

    async def _explain_growth(self, record: JobRecord) -> Explanation:
        """Explain why a running job still lacks tasks."""
        standing = _standing(record)
        try:
            answer = await self.control.request(f"/explain/{record.id}")
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
        owner, admission = await self._owner_of(record), await self.store.admission()

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

    async def _owner_of(self, record: JobRecord) -> Actor:
        """The job's owner as an actor, with the grants of its groups; a deleted account has only its name."""
        user = None if record.orphaned else await self.store.user(record.user)
        if user is None:
            return Actor(record.user)
        groups = [group for group in await self.store.groups() if group.name in user.memberships]
        return actor_of(Token("", user.name, "owner", "api", 0.0), user, groups)

    async def _summaries(self, jobs: Iterable[str]) -> tuple[JobSummary, ...]:
        """Summaries of those jobs that still exist."""
        found = [await self.store.find_job(job) for job in jobs]
        return tuple(job.summary for job in found if job is not None)

    async def _explain_dependencies(self, actor: Actor, record: JobRecord) -> Explanation:
        needs = msgspec.json.decode(record.doc)["spec"].get("dependsOn", ())
        conditions = {need["job"]: need.get("condition", "succeeded") for need in needs}
        found = [await self.store.find_job(job, actor.user) for job in conditions]
        awaited = [other.summary for other in found if other is not None and other.live]
        mates = [job for job in found if job is not None and job.live and record.array_parent == job.array_parent != ""]
        named = [(f"{job.name} ({job.state})", conditions[job.id]) for job in awaited[:_MOST_NAMED]]
        message = waits_for_jobs(named, len(awaited) - len(named))
        if not awaited:
            message = "It is about to be queued: what it depends on is over."
        if mates and len(mates) == len(awaited):
            message = held_by_array(mates[0].name, array_index(record.name) - array_index(mates[0].name))
        reasons = ReasonsView(ReasonView("dependency", message), ahead=len(awaited))
        return Explanation(record.id, record.phase, message, reasons, tuple(awaited))

    async def stop(self, actor: Actor, ref: str) -> JobDetail:
        """Ask control to stop the job.

        Raises Conflict `job-over`.
        """
        record, decision = await self.job_for(actor, ref, "job.stop")
        if not record.live:
            raise Conflict("job-over", f"Job {record.name} is over already ({record.phase}).")
        return await self._intend(actor, record, "job.stop", IntentKind.STOP, {}, decision)

    async def restart(self, actor: Actor, ref: str) -> JobDetail:
        """Ask control to restart the job.

        Raises TooManyRequests if the job is over and its user would have too many tasks.
        """
        record, decision = await self.job_for(actor, ref, "job.restart")
        line, at = self.line(actor, "job.restart", job_resource(record), decision), self.clock.now()
        await self.store.restart(record.id, actor=actor.user, at=at, audit=line, most_tasks=self.allowance.tasks)
        return await self._detail(actor, record)

    async def scale(
        self, actor: Actor, ref: str, *, replicas: int, role: str = "", by_object: bool = False
    ) -> JobDetail:
        """Ask for another number of replicas of the counted role.

        A job created from a Kubernetes object is scaled through the object, unless `by_object`: then the object has the
        number already.

        Raises SpecError outside of the document's bounds, InvalidInput for another role, Conflict `job-over`,
        TooManyRequests when the job's user would have too many tasks.
        """
        record, decision = await self.job_for(actor, ref, "job.scale")
        if not record.live:
            raise Conflict("job-over", f"Job {record.name} is over already ({record.phase}).")
        document = UnifiedJob.from_document(msgspec.json.decode(record.doc))
        counted = document.counted_role.name
        if role and role != counted:
            raise InvalidInput("role-not-counted", f"Only role {counted} of this job can be scaled.")
        document.scaled(replicas)
        data = {"role": counted, "replicas": replicas}
        sizes, asked, most = {counted: replicas}, {counted: document.replicas_of(counted)}, self.allowance.tasks
        if not by_object and await self._asked_its_object(actor, record, sizes, asked):
            await self.note(actor, "job.scale", job_resource(record), decision, **data)
            return await self._detail(actor, record)
        line, at = self.line(actor, "job.scale", job_resource(record), decision, **data), self.clock.now()
        await self.store.scale(record.id, sizes, asked=asked, actor=actor.user, at=at, audits=[line], most_tasks=most)
        return await self._detail(actor, record)

    async def _asked_its_object(
        self, actor: Actor, record: JobRecord, sizes: dict[str, int], asked: dict[str, int]
    ) -> bool:
        """Scale the Kubernetes object that the job was created from; False if there is none or it is gone.

        Raises Unavailable when the cluster that has the object does not answer, TooManyRequests for too many tasks.
        """
        if await self.store.object_of(record.id) is None:
            return False
        await self.store.check_scale(record.id, sizes, asked, self.allowance.tasks)
        (replicas,) = sizes.values()
        body = {"replicas": replicas, "actor": actor.user}
        return bool(await self.control.request(f"/objects/{record.id}/scale", body))

    async def delete(self, actor: Actor, ref: str, *, stop: bool = False) -> None:
        """Remove a job that is over; with `stop` a live job is stopped first.

        Raises Conflict `job-live`, or `still-stopping` when it has not ended after 60 s.
        """
        record, decision = await self.job_for(actor, ref, "job.delete")
        if record.live:
            if not stop:
                raise Conflict(
                    "job-live",
                    f"Job {record.name} is not over; stop it first, or ask for both (`corral rm --stop`, stop=true).",
                )
            await self.store.add_intent(record.id, IntentKind.STOP, {}, actor=actor.user, at=self.clock.now())
            await self._await_end(record)
        line = self.line(actor, "job.delete", job_resource(record), decision, name=record.name)
        await self.store.add_intent(record.id, IntentKind.DELETE, actor=actor.user, at=self.clock.now(), audit=line)

    async def _await_end(self, record: JobRecord) -> None:
        deadline = self.clock.now() + _STOP_SECONDS
        while self.clock.now() < deadline:
            now = await self.store.find_job(record.id)
            if now is None or not now.live:
                return
            await asyncio.sleep(_LOOK_SECONDS)
        raise Conflict("still-stopping", f"Job {record.name} is still stopping; delete it once it is over.")

    async def _intend(
        self, actor: Actor, record: JobRecord, action: str, kind: IntentKind, data: dict[str, Any], decision: Any
    ) -> JobDetail:
        line = self.line(actor, action, job_resource(record), decision, **data)
        await self.store.add_intent(record.id, kind, data, actor=actor.user, at=self.clock.now(), audit=line)
        return await self._detail(actor, record)

    async def events_after(self, seq: int, limit: int = 500) -> list[EventRecord]:
        """The events of all jobs after a seq; the caller must filter them with `may_see`."""
        return await self.store.events(seq, limit)

    async def may_listen(self, actor: Actor) -> None:
        """Check that the actor may hold an event stream open.

        Raises Forbidden, for example for the token of a running job.
        """
        await self.check(actor, "event.read", Resource("event"))

    async def last_event(self) -> int:
        """The seq of the last event."""
        return await self.store.last_seq()

    async def wait_for_events(self, timeout: float) -> None:
        """Wait until something is stored, at most `timeout` seconds."""
        await self.store.wakeup.wait(timeout)

    async def may_see(self, actor: Actor, event: EventRecord) -> bool:
        """Whether the actor may see an event."""
        return decide(actor, "event.read", Resource("job", event.job)).allowed

    async def owner_of(self, job: str) -> str:
        """The owner of a job.

        Raises NotFound.
        """
        owner = await self.store.owner_of(job)
        if owner is None:
            raise NotFound("job-not-found", f"There is no job {job[:100]}.")
        return owner


def _may_read_environment(actor: Actor, record: JobRecord) -> bool:
    return decide(actor, "job.environment", job_resource(record)).allowed


def _standing(record: JobRecord) -> str:
    ended = record.summary.exit
    match record.phase:
        case "waiting":
            return "It is suspended, and waits until somebody resumes it."
        case "running":
            tasks = record.summary.tasks
            return f"It runs: {tasks.running} of {number_of(tasks.total, 'task')}."
        case "starting":
            return "Its devices are given and its tasks are being started."
        case "stopping":
            return "Its tasks are being ended."
        case _ if ended is not None:
            return f"It has {record.phase}: {ended.phrase} ({ended.code}). {ended.message}".strip()
        case _:
            return f"It has {record.phase}."
