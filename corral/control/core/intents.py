"""Carry out the stored requests of users, in the order in which they were stored."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from corral.control.core.job_events import DEPENDENCY, JobEvents
from corral.control.core.queue_turns import turns_at
from corral.control.core.receipts import PreemptionTerms
from corral.control.core.world import Job, dependencies_of
from corral.kernel.ids import JobId, TaskKey
from corral.model.cordons import CORDONS_CHANGED
from corral.model.document_revisions import CONFIGURED
from corral.model.events import (
    DependencyFailed,
    HoldReleased,
    MigrateRequested,
    Preempted,
    RestartRequested,
    ResumeRequested,
    ScaleRequested,
    StopRequested,
    SuspendRequested,
)
from corral.model.facts import Fact
from corral.model.job_edits import Edit, edited, edited_fields, edits_in_words
from corral.model.phases import Phase, phase
from corral.model.plan import Rule
from corral.model.runs import WorkReport
from corral.model.store_writes import Intent, IntentKind, LiveJob


class IntentsRead(msgspec.Struct, frozen=True, tag=True):
    """Stored requests, in order, and those jobs that they need and that may not be in memory."""

    intents: Sequence[Intent]
    jobs: Mapping[JobId, LiveJob] = {}
    """The jobs that these intents name, or that jobs of theirs depend on, as they are stored."""
    groups: Mapping[str, tuple[str, ...]] = {}
    """The groups of the users of those jobs."""


class Intents:
    """Turns intents into launcher events."""

    def __init__(self, job_events: JobEvents, cursor: int) -> None:
        self._job_events = job_events
        self.cursor = cursor
        """The last intent that was folded."""
        self.preempting = ""
        """The actor who asked to preempt jobs above their queues' new limits; reset by the loop when it does so."""

    def fold(self, read: IntentsRead, now: float) -> None:
        """Fold intents that follow those folded before."""
        world = self._job_events.world
        stored: dict[JobId, Job] = {}
        for job, record in read.jobs.items():
            if job not in world.jobs:
                stored[job] = Job.from_record(record, read.groups.get(record.user, ()))
        for intent in read.intents:
            self._fold_one(intent, stored, now)
            self.cursor = self._job_events.pending.cursor = intent.seq

    def _fold_one(self, intent: Intent, stored: Mapping[JobId, Job], now: float) -> None:
        if intent.kind == CONFIGURED:
            if intent.data.get("preempt"):
                self.preempting = intent.actor
            return
        if intent.kind == CORDONS_CHANGED:
            return
        job = self._job_events.world.jobs.get(intent.job) or stored.get(intent.job)
        if job is None:
            self._job_events.pending.warn("intent for a job that is gone", job=intent.job, kind=intent.kind)
            return
        if "hang" in intent.data and int(intent.data["jobAttempt"]) != job.run.attempt:
            return  # the attempt that hung has ended
        self._carry_out(job, intent, stored, now)

    def _carry_out(self, job: Job, intent: Intent, stored: Mapping[JobId, Job], now: float) -> None:
        match intent.kind:
            case IntentKind.SUBMITTED:
                if not job.run.roles:
                    self._submitted(job, stored, now)
            case IntentKind.STOP:
                if "idle" in intent.data:
                    self._suspend(job, intent, now)  # so that it leaves a receipt
                if not job.completed:
                    self._job_events.event(job, StopRequested(intent.actor), now)
            case IntentKind.RESTART:
                self._job_events.world.jobs[job.id] = job
                self._job_events.event(job, RestartRequested(intent.actor), now)
            case IntentKind.SCALE:
                self._scale(job, intent, now)
            case IntentKind.SUSPEND:
                self._suspend(job, intent, now)
            case IntentKind.CHECKPOINTED:
                self._job_events.checkpointed(job, int(intent.data["jobAttempt"]), intent.at, now)
            case IntentKind.WORK_REPORTED:
                report = msgspec.convert(intent.data["report"], WorkReport)
                self._job_events.work_reported(job, int(intent.data["jobAttempt"]), report, now)
            case IntentKind.TAGS:
                job.summary = msgspec.structs.replace(job.summary, tags=tuple(intent.data["tags"]))
                self._job_events.pending.jobs.add(job.id)
            case IntentKind.MIGRATE:
                key = TaskKey(str(intent.data["role"]), int(intent.data["index"]))
                self._job_events.event(job, MigrateRequested(key, intent.actor), now)
            case IntentKind.RESUME:
                self._resume(job, intent, now)
            case _:
                self._reconsider(job, intent, now)

    def _reconsider(self, job: Job, intent: Intent, now: float) -> None:
        """Carry out the intents for jobs that hold nothing: order, edit and delete."""
        match intent.kind:
            case IntentKind.ORDER:
                self._order(job, intent, now)
            case IntentKind.EDIT:
                self._edit(job, intent, now)
            case IntentKind.DELETE:
                self._delete(job, now)
            case _:
                self._job_events.pending.warn("unknown intent", job=intent.job, kind=intent.kind)

    def _submitted(self, job: Job, stored: Mapping[JobId, Job], now: float) -> None:
        others = needed_by(job, self._job_events.world.jobs, stored)
        job.waits_for = _live(others)
        self._job_events.create(job, now)
        settle_dependencies(self._job_events, job, others, now)

    def _suspend(self, job: Job, intent: Intent, now: float) -> None:
        """Suspend a job with a receipt, for a person, its idle devices or a used-up budget."""
        if job.completed:
            return
        why = PreemptionTerms(Rule.SUSPENDED, f"the job was suspended by {intent.actor}", by_user=intent.actor)
        if said := intent.data.get("idle"):
            why = PreemptionTerms(Rule.IDLE, str(said))
        elif said := intent.data.get("hang"):
            why = PreemptionTerms(Rule.SUSPENDED, str(said))
        elif said := intent.data.get("budget"):
            why = PreemptionTerms(Rule.BUDGET, str(said))
        self._job_events.preempt(job, SuspendRequested(intent.actor, why.rule, why.message), why, now)

    def _resume(self, job: Job, intent: Intent, now: float) -> None:
        """Resume a job for a person, or because its budget allows more."""
        said = intent.data.get("budget")
        why = ResumeRequested(intent.actor, Rule.BUDGET, str(said)) if said else ResumeRequested(intent.actor)
        self._job_events.event(job, why, now)

    def _scale(self, job: Job, intent: Intent, now: float) -> None:
        if job.completed:
            return
        data = intent.data
        remove = tuple(int(index) for index in data.get("remove", ()))
        if said := data.get("idle"):
            self._take_idle(job, str(data["role"]), remove, str(said), now)
        self._job_events.event(job, ScaleRequested(str(data["role"]), int(data["replicas"]), intent.actor, remove), now)

    def _take_idle(self, job: Job, role: str, indexes: Sequence[int], said: str, now: float) -> None:
        """Take tasks from an elastic job that left its devices idle, with a receipt, before it is scaled down."""
        going = tuple(key for index in indexes if (key := TaskKey(role, index)) in job.tasks)
        if going:
            event = Preempted(job.run.attempt, Rule.IDLE, said, going)
            self._job_events.preempt(job, event, PreemptionTerms(Rule.IDLE, said), now)

    def _order(self, job: Job, intent: Intent, now: float) -> None:
        """Reorder a waiting job within its queue. A job that runs by now keeps the new turn for its next wait."""
        if job.completed:
            return
        jobs, queue = self._job_events.world.jobs, job.terms.queue
        other = jobs.get(JobId(str(intent.data.get("before", ""))))
        if intent.data.get("queue", queue) != queue or (other is not None and other.terms.queue != queue):
            elsewhere = "The job, or the one to put it before, has moved to another queue."
            self._job_events.tell(job.id, now, Fact("job.order-refused", elsewhere), intent.actor)
            return
        others = [each for each in jobs.values() if each is not job and each.terms.queue == queue and each.unplaced()]
        before = None if other is None else other.run.turn
        turn, moved = turns_at(str(intent.data["place"]), {each.id: each.run.turn for each in others}, before)
        for each, at in moved.items():
            self._job_events.take_turn(jobs[each], at)
        self._job_events.take_turn(job, turn)

    def _edit(self, job: Job, intent: Intent, now: float) -> None:
        """Change the priority, maxDuration or queue of a waiting job; refused when it has begun or ended."""
        if job.completed or phase(job.run) is not Phase.WAITING:
            begun = Fact(
                "job.edit-refused", "The job no longer waits, so it keeps its priority, maxDuration and queue."
            )
            self._job_events.tell(job.id, now, begun, intent.actor)
            return
        before, asked = job.document, msgspec.convert(intent.data, Edit)
        judged = intent.data.get("judged", {})
        queue, priority = judged.get("queue", job.terms.queue), judged.get("priority", job.terms.priority)
        elsewhere = queue != job.terms.queue and bool(asked.queue or asked.priority)
        if elsewhere or (asked.queue and priority != job.terms.priority):
            other = "The job's queue or priority changed before this edit was applied; try again."
            self._job_events.tell(job.id, now, Fact("job.edit-refused", other), intent.actor)
            return
        self._job_events.edit(job, edited(job.text, asked))
        if changes := edited_fields(before, job.document):
            said = f"{intent.actor} changed the job's {edits_in_words(changes)}."
            self._job_events.tell(job.id, now, Fact("job.edited", said), intent.actor)

    def _delete(self, job: Job, now: float) -> None:
        if not job.completed:
            fact = Fact("job.delete-refused", "The job is not over; stop it first.")
            self._job_events.tell(job.id, now, fact)
            return
        self._job_events.world.jobs.pop(job.id, None)
        self._job_events.pending.removed.append(job.id)


def named_jobs(intents: Iterable[Intent], known: Container[JobId]) -> list[JobId]:
    """The jobs that these intents are about, without those that are `known`."""
    return sorted({each.job for each in intents if each.job and each.job not in known})


def needed_jobs(stored: Sequence[LiveJob], known: Container[JobId]) -> list[JobId]:
    """The jobs that those of `stored` depend on which are new or held, without `stored` and those that are `known`."""
    waiting = [each for each in stored if not each.run.roles or each.run.hold == DEPENDENCY]
    names = {JobId(need.job) for each in waiting for need in dependencies_of(each)}
    if not names:
        return []
    names -= {each.id for each in stored}
    return sorted(name for name in names if name not in known)


def settle(job_events: JobEvents, job: Job, stored: Mapping[JobId, Job], now: float) -> None:
    """After a start: look again at the jobs that a held job waits for, as they may have ended while no control ran."""
    others = needed_by(job, job_events.world.jobs, stored)
    job.waits_for = _live(others)
    job_events.wait_for(job)
    settle_dependencies(job_events, job, others, now)


def needed_by(job: Job, live: Mapping[JobId, Job], stored: Mapping[JobId, Job]) -> dict[str, Job | None]:
    """The jobs that a job depends on, live or over; None where one is gone."""
    return {need.job: live.get(JobId(need.job)) or stored.get(JobId(need.job)) for need in job.needs}


def _live(others: Mapping[str, Job | None]) -> frozenset[JobId]:
    return frozenset(JobId(name) for name, other in others.items() if other is not None and not other.completed)


def settle_dependencies(job_events: JobEvents, job: Job, others: Mapping[str, Job | None], now: float) -> None:
    """Apply ended dependencies to a held job: it fails, is released, or waits for the rest."""
    for need in job.needs:
        other = others.get(need.job)
        if (other is not None and not other.completed) or need.condition == "ended":
            continue
        if other is None:
            job_events.event(job, DependencyFailed(f"{need.job} does not exist any more"), now)
            return
        if other.run.completion is None or not other.run.completion.succeeded:
            job_events.event(job, DependencyFailed(f"{other.name} did not succeed"), now)
            return
    if job.needs and not job.waits_for:
        job_events.event(job, HoldReleased(), now)
