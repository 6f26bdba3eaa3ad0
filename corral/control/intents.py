"""Carry out users' stored intents for jobs, in commit order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import structlog

from corral.control.fold import Folder
from corral.control.receipts import Yielded
from corral.control.turns import turns_at
from corral.control.world import Job
from corral.kernel.ids import JobId, TaskKey
from corral.model.cordons import CORDONS_CHANGED
from corral.model.documents import CONFIGURED
from corral.model.edits import Edit, edited, edited_fields, edits_in_words
from corral.model.events import (
    DependencyFailed,
    HoldReleased,
    MigrateRequested,
    RestartRequested,
    ResumeRequested,
    ScaleRequested,
    StopRequested,
    SuspendRequested,
)
from corral.model.facts import Fact
from corral.model.phases import Phase, phase
from corral.model.plan import Rule
from corral.model.writes import Intent, IntentKind
from corral.store import Store

log = structlog.get_logger()


class Intents:
    """Reads intents after the cursor and turns each into launcher events."""

    def __init__(self, store: Store, folder: Folder, cursor: int) -> None:
        self._store = store
        self._folder = folder
        self.cursor = cursor
        self.reconfigure = False
        """Whether the configuration documents have changed; reset by the loop when it reads them."""
        self.preempting = ""
        """The actor who asked to preempt jobs above their queues' new limits; reset by the loop when it does so."""
        self.cordons_changed = False
        """Whether cordons have changed; reset by the loop when it reads them."""

    async def fold(self, now: float, limit: int = 500) -> bool:
        """Fold the next intents; returns whether there may be more."""
        intents = await self._store.intents(self.cursor, limit)
        if not intents:
            return False
        await self._load_missing(intents)
        for intent in intents:
            await self._fold_one(intent, now)
            self.cursor = self._folder.draft.cursor = intent.seq
        return len(intents) == limit

    async def _load_missing(self, intents: Sequence[Intent]) -> None:
        """Load the jobs of these intents that are not in memory, because they have ended or are new."""
        world = self._folder.world
        missing = {intent.job for intent in intents if intent.job and intent.job not in world.jobs}
        self._loaded: dict[JobId, Job] = {
            record.id: Job.from_record(record) for record in await self._store.load_jobs(sorted(missing))
        }
        await know_groups(self._store, self._loaded.values())

    async def _fold_one(self, intent: Intent, now: float) -> None:
        if intent.kind == CONFIGURED:
            self.reconfigure = True
            if intent.data.get("preempt"):
                self.preempting = intent.actor
            return
        if intent.kind == CORDONS_CHANGED:
            self.cordons_changed = True
            return
        job = self._folder.world.jobs.get(intent.job) or self._loaded.get(intent.job)
        if job is None:
            log.warning("intent for a job that is gone", job=intent.job, kind=intent.kind)
            return
        await self._carry_out(job, intent, now)

    async def _carry_out(self, job: Job, intent: Intent, now: float) -> None:
        match intent.kind:
            case IntentKind.SUBMITTED:
                if job.run.roles:
                    return
                await self._submitted(job, now)
            case IntentKind.STOP:
                if not job.completed:
                    self._folder.event(job, StopRequested(intent.actor), now)
            case IntentKind.RESTART:
                self._folder.world.jobs[job.id] = job
                self._folder.event(job, RestartRequested(intent.actor), now)
            case IntentKind.SCALE:
                self._scale(job, intent, now)
            case IntentKind.SUSPEND:
                why = Yielded(Rule.SUSPENDED, f"the job was suspended by {intent.actor}", by_user=intent.actor)
                self._folder.have_yield(job, SuspendRequested(intent.actor), why, now)
            case IntentKind.CHECKPOINTED:
                self._folder.checkpointed(job, int(intent.data["jobAttempt"]), intent.at, now)
            case IntentKind.TAGS:
                job.summary = msgspec.structs.replace(job.summary, tags=tuple(intent.data["tags"]))
                self._folder.draft.jobs.add(job.id)
            case IntentKind.MIGRATE:
                key = TaskKey(str(intent.data["role"]), int(intent.data["index"]))
                self._folder.event(job, MigrateRequested(key, intent.actor), now)
            case IntentKind.RESUME:
                self._folder.event(job, ResumeRequested(intent.actor), now)
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
                log.warning("unknown intent", job=intent.job, kind=intent.kind)

    async def settle(self, job: Job, now: float) -> None:
        """After a start, check whether jobs that a held job depends on have ended meanwhile."""
        others = await self._needed(job)
        job.waits_for = _live(others)
        self._folder.wait_for(job)
        settle_dependencies(self._folder, job, others, now)

    async def _submitted(self, job: Job, now: float) -> None:
        others = await self._needed(job)
        job.waits_for = _live(others)
        self._folder.create(job, now)
        settle_dependencies(self._folder, job, others, now)

    async def _needed(self, job: Job) -> dict[str, Job | None]:
        """The jobs that a job depends on, live or ended, by id; None for a removed one."""
        world = self._folder.world
        names = [JobId(need.job) for need in job.needs]
        stored = await self._store.load_jobs([name for name in names if name not in world.jobs])
        found = {record.id: Job.from_record(record) for record in stored}
        return {name: world.jobs.get(name) or found.get(name) for name in names}

    def _scale(self, job: Job, intent: Intent, now: float) -> None:
        if job.completed:
            return
        data = intent.data
        remove = tuple(int(index) for index in data.get("remove", ()))
        self._folder.event(job, ScaleRequested(str(data["role"]), int(data["replicas"]), intent.actor, remove), now)

    def _order(self, job: Job, intent: Intent, now: float) -> None:
        """Reorder a waiting job within its queue. A job that runs by now keeps the new turn for its next wait."""
        if job.completed:
            return
        jobs, queue = self._folder.world.jobs, job.terms.queue
        other = jobs.get(JobId(str(intent.data.get("before", ""))))
        if intent.data.get("queue", queue) != queue or (other is not None and other.terms.queue != queue):
            elsewhere = "It, or the job that it was to come before, went to another queue meanwhile."
            self._folder.tell(job.id, now, Fact("job.order-refused", elsewhere), intent.actor)
            return
        others = [each for each in jobs.values() if each is not job and each.terms.queue == queue and each.unplaced()]
        before = None if other is None else other.run.turn
        turn, moved = turns_at(str(intent.data["place"]), {each.id: each.run.turn for each in others}, before)
        for each, at in moved.items():
            self._folder.take_turn(jobs[each], at)
        self._folder.take_turn(job, turn)

    def _edit(self, job: Job, intent: Intent, now: float) -> None:
        """Change the priority, maxDuration or queue of a waiting job; refused when it has begun or ended."""
        if job.completed or phase(job.run) is not Phase.WAITING:
            begun = Fact("job.edit-refused", "It no longer waits, so it keeps its priority, maxDuration and queue.")
            self._folder.tell(job.id, now, begun, intent.actor)
            return
        before, asked = job.document, msgspec.convert(intent.data, Edit)
        judged = intent.data.get("judged", {})
        queue, priority = judged.get("queue", job.terms.queue), judged.get("priority", job.terms.priority)
        elsewhere = queue != job.terms.queue and bool(asked.queue or asked.priority)
        if elsewhere or (asked.queue and priority != job.terms.priority):
            other = "Its queue or priority changed before this was carried out; ask again."
            self._folder.tell(job.id, now, Fact("job.edit-refused", other), intent.actor)
            return
        self._folder.edit(job, edited(job.text, asked))
        if changes := edited_fields(before, job.document):
            said = f"{intent.actor} changed its {edits_in_words(changes)}."
            self._folder.tell(job.id, now, Fact("job.edited", said), intent.actor)

    def _delete(self, job: Job, now: float) -> None:
        if not job.completed:
            fact = Fact("job.delete-refused", "The job is not over; stop it first.")
            self._folder.tell(job.id, now, fact)
            return
        self._folder.world.jobs.pop(job.id, None)
        self._folder.draft.removed.append(job.id)


async def know_groups(store: Store, jobs: Iterable[Job]) -> None:
    """Set the groups of jobs from their users, for limits by group."""
    users: dict[str, tuple[str, ...]] = {}
    for job in jobs:
        if job.user not in users:
            user = await store.user(job.user)
            users[job.user] = user.groups if user is not None else ()
        job.groups = users[job.user]


def _live(others: Mapping[str, Job | None]) -> frozenset[JobId]:
    return frozenset(JobId(name) for name, other in others.items() if other is not None and not other.completed)


def settle_dependencies(folder: Folder, job: Job, others: Mapping[str, Job | None], now: float) -> None:
    """Apply ended dependencies to a held job: it fails, is released, or waits for the rest."""
    for need in job.needs:
        other = others.get(need.job)
        if (other is not None and not other.completed) or need.condition == "ended":
            continue
        if other is None:
            folder.event(job, DependencyFailed(f"{need.job} does not exist any more"), now)
            return
        if other.run.completion is None or not other.run.completion.succeeded:
            folder.event(job, DependencyFailed(f"{other.name} did not succeed"), now)
            return
    if job.needs and not job.waits_for:
        folder.event(job, HoldReleased(), now)
