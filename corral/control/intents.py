"""Why: what people ask for is stored before anything is done about it; this reads those wishes in order and carries them out."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from corral.control.fold import Folder
from corral.control.world import Job
from corral.kernel.ids import JobId
from corral.model.events import DependencyFailed, HoldReleased, RestartRequested, ScaleRequested, StopRequested
from corral.model.facts import Fact
from corral.model.writes import Intent, IntentKind
from corral.store import Store

log = structlog.get_logger()


class Intents:
    """Reads intents after the cursor and turns each into launcher events."""

    def __init__(self, store: Store, folder: Folder, cursor: int) -> None:
        self._store = store
        self._folder = folder
        self.cursor = cursor

    async def fold(self, now: float, limit: int = 500) -> bool:
        """Fold the next intents; True when there may be more."""
        intents = await self._store.intents(self.cursor, limit)
        if not intents:
            return False
        await self._load_missing(intents)
        for intent in intents:
            await self._fold_one(intent, now)
            self.cursor = self._folder.draft.cursor = intent.seq
        return len(intents) == limit

    async def _load_missing(self, intents: Sequence[Intent]) -> None:
        """Bring the jobs that these intents are about, and that are over or new, into memory."""
        world = self._folder.world
        missing = {intent.job for intent in intents if intent.job not in world.jobs}
        self._loaded: dict[JobId, Job] = {
            record.id: Job.from_record(record) for record in await self._store.load_jobs(sorted(missing))
        }

    async def _fold_one(self, intent: Intent, now: float) -> None:
        world = self._folder.world
        job = world.jobs.get(intent.job) or self._loaded.get(intent.job)
        if job is None:
            log.warning("intent for a job that is gone", job=intent.job, kind=intent.kind)
            return
        match intent.kind:
            case IntentKind.SUBMITTED:
                if job.run.roles:
                    return
                await self._submitted(job, now)
            case IntentKind.STOP:
                if not job.completed:
                    self._folder.event(job, StopRequested(intent.actor), now)
            case IntentKind.RESTART:
                world.jobs[job.id] = job
                self._folder.event(job, RestartRequested(intent.actor), now)
            case IntentKind.SCALE:
                self._scale(job, intent, now)
            case IntentKind.DELETE:
                self._delete(job, now)
            case _:
                log.warning("unknown intent", job=intent.job, kind=intent.kind)

    async def _submitted(self, job: Job, now: float) -> None:
        ended: dict[str, Job] = {}
        for need in job.document.spec.depends_on:
            other = JobId(need.job)
            if other in self._folder.world.jobs:
                job.waits_for.add(other)
            else:
                for record in await self._store.load_jobs([other]):
                    ended[other] = Job.from_record(record)
        self._folder.create(job, now)
        for need in job.document.spec.depends_on:
            if JobId(need.job) not in job.waits_for:
                self._judge_ended(job, need.job, need.condition, ended.get(need.job), now)

    def _judge_ended(self, job: Job, name: str, condition: str, other: Job | None, now: float) -> None:
        if condition == "ended":
            return
        if other is None:
            self._folder.event(job, DependencyFailed(f"{name} does not exist any more"), now)
        elif not (other.run.completion and other.run.completion.succeeded):
            self._folder.event(job, DependencyFailed(f"{other.document.name} ({name}) did not succeed"), now)

    def _scale(self, job: Job, intent: Intent, now: float) -> None:
        if job.completed:
            return
        data = intent.data
        remove = tuple(int(index) for index in data.get("remove", ()))
        self._folder.event(
            job, ScaleRequested(str(data["role"]), int(data["replicas"]), intent.actor, remove), now
        )

    def _delete(self, job: Job, now: float) -> None:
        if not job.completed:
            fact = Fact("job.delete-refused", "The job is not over; stop it first.")
            self._folder.tell(job.id, now, fact)
            return
        self._folder.world.jobs.pop(job.id, None)
        self._folder.draft.removed.append(job.id)


def recheck_dependencies(folder: Folder, job: Job, ended: dict[JobId, Job], now: float) -> None:
    """After a start: what a waiting job waits for may have ended while nobody looked."""
    world = folder.world
    for need in job.document.spec.depends_on:
        other = JobId(need.job)
        if other in world.jobs:
            job.waits_for.add(other)
            world.dependents.setdefault(other, set()).add(job.id)
    for need in job.document.spec.depends_on:
        if JobId(need.job) not in job.waits_for and need.condition == "succeeded":
            before = ended.get(JobId(need.job))
            if before is None or not (before.run.completion and before.run.completion.succeeded):
                folder.event(job, DependencyFailed(f"{need.job} did not succeed"), now)
                return
    if not job.waits_for:
        folder.event(job, HoldReleased(), now)
