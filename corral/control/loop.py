"""The control loop: fold events, plan, commit in one transaction, then act.

The order is the guarantee: nothing is done before it is stored, and everything stored is done at least once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from math import inf

import msgspec
import structlog

from corral.control.configuration import Configured, NothingDescribed, Presenter
from corral.control.dispatch import Dispatcher
from corral.control.draft import Draft
from corral.control.external import EXTERNAL, ExternalTasks
from corral.control.fold import DEPENDENCY, Folder
from corral.control.intents import Intents, know_groups
from corral.control.lead import Leadership
from corral.control.ledger import Ledger, Loans
from corral.control.observe import Machines
from corral.control.past import Past
from corral.control.receipts import Receipts, from_eviction
from corral.control.render import LaunchContext, render
from corral.control.standing import standing
from corral.control.upkeep import Upkeep
from corral.control.world import Job, World
from corral.engines.base import Engine
from corral.kernel.clock import Clock
from corral.kernel.errors import Conflict, Unavailable
from corral.kernel.ids import AttemptId, JobId, parse_attempt_id
from corral.kernel.units import devices
from corral.launcher import LaunchPolicy
from corral.model.events import PlaceLost, Preempted, StartRefused, TimePassed
from corral.model.facts import GUARANTEE_LOST
from corral.model.launch import EngineEvent, EngineLost, Exited, InventoryChanged, Noted, Started, TaskLaunch
from corral.model.phases import phase
from corral.model.placement import Placement
from corral.model.plan import Eviction, GangPlacement, Reasons
from corral.model.requests import GangRequest
from corral.model.states import TaskState
from corral.model.summary import summarize
from corral.model.writes import JobWrite, OutboxRow
from corral.scheduler import (
    Cluster,
    EngineUnknown,
    GangNominated,
    GangPlaced,
    HivedConfigured,
    Policy,
    Queue,
    Steps,
    UsageRecalled,
    carry_out,
    plan,
)
from corral.scheduler.excess import fragmenting, over_limit
from corral.scheduler.lending import lending, owned_devices
from corral.store import LeadershipLost, Store

log = structlog.get_logger()

NODE_LOST = -1001
"""OpenPAI's code for a task whose node is gone."""
_STARTED = frozenset({TaskState.PREPARING, TaskState.RUNNING})
_EVENTS_AT_ONCE = 1000
_FLUSH_SECONDS = 0.5
"""Seconds that rows of carried-out commands may stay in the outbox while nothing else is written."""
_SILENT_SECONDS = 15.0
"""Seconds without a finished cycle after which a leader reports a problem."""
_LOOK_SECONDS = 2.0
"""Seconds between two reads of the store when no wake-up arrives, in case one is lost."""


class _InJobs(Steps):
    """Carries out a plan in the jobs, in addition to cluster and queue."""

    def __init__(self, control: Control, now: float) -> None:
        self._control = control
        self._now = now

    def before_placing(self, request: GangRequest, found: GangPlacement) -> Placement:
        return self._control.folder.ranked(found)

    def placed(self, found: GangPlacement, event: GangPlaced) -> None:
        self._control.folder.placed(found, event.placement, self._now)

    def evict(self, cluster: Cluster, eviction: Eviction) -> None:
        self._control.evict(eviction, self._now)


class Control:
    """The control loop: fold, plan, commit, dispatch; its whole state is in `world`."""

    def __init__(
        self,
        store: Store,
        engines: Mapping[str, Engine],
        leadership: Leadership,
        *,
        clock: Clock,
        launch_policy: LaunchPolicy,
        policy: Policy,
        presenter: Presenter | None = None,
        not_ready_seconds: float = 60.0,
    ) -> None:
        """`policy` applies while no document sets another; `presenter` makes engines follow Cluster documents.

        A node that is not ready for `not_ready_seconds` is lost to the gangs on it.
        """
        self.store = store
        self.engines = engines
        self.clock = clock
        self.configured = Configured(store, policy, presenter or NothingDescribed())
        self.launch_policy = launch_policy
        self.context: LaunchContext
        self.world = World(Cluster(), Queue())
        self._leadership = leadership
        self._events: deque[EngineEvent | StartRefused | PlaceLost] = deque()
        self._taken: list[EngineEvent | StartRefused | PlaceLost] = []
        self._awake = asyncio.Event()
        self._stored = asyncio.Condition()
        self._rung = True
        self._flushed = 0.0
        self._cycled = time.monotonic()
        self.machines = Machines(store, engines, not_ready_seconds=not_ready_seconds)
        self.machines.held = lambda: self.world.held_nodes()
        self._plan_again: float | None = None
        self._hived = HivedConfigured(None)
        self._next_upkeep: float | None = None
        self._owned: tuple[object, dict[str, int]] | None = None
        self.scale_object: Callable[[JobId, int], Awaitable[bool]] = _no_object
        """Sets the replicas in the object that a job was made from; returns whether there is one."""
        self.external = ExternalTasks(self.report, clock.now)
        self.dispatcher = self._new_dispatcher()
        self.ready = asyncio.Event()
        """Set once it leads and has loaded all jobs; it stays set."""
        self.world_is_whole = False
        """Whether queries can be answered from the world: not while it is being rebuilt."""
        self.removed: Callable[[JobId], None] = lambda job: None
        """Called when a job and its history were deleted from the store."""
        self.recovering: Callable[[], Awaitable[None]] = _nothing
        """Awaited when all live jobs are loaded, before the nodes are read."""
        self.changed: Callable[[Iterable[JobId]], None] = lambda jobs: None
        """Called after a commit with the jobs that changed."""

    async def run(self) -> None:
        """Lead until cancelled.

        Raises LeadershipLost when another control begins an epoch.
        """
        await self._leadership.acquire()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._leadership.keep())
            for engine in self.engines.values():
                await engine.open()
                group.create_task(self._watch(engine))
            group.create_task(self._listen())
            group.create_task(self._lead())

    async def close(self) -> None:
        """Close everything; tasks run on."""
        await self.dispatcher.close()
        for engine in self.engines.values():
            await engine.close()
        await self._leadership.release()

    async def _lead(self) -> None:
        while True:
            try:
                await self._recover()
                self.ready.set()
                while True:
                    await self._cycle()
                    self._cycled = time.monotonic()
                    await self._wait()
            except LeadershipLost:
                raise
            except (Unavailable, Conflict) as error:
                log.warning("reading everything again", code=error.code, message=error.message)
                await self.dispatcher.close()
                await asyncio.sleep(0.1)

    async def _recover(self) -> None:
        """Rebuild the world from the store alone, and continue with commands that were stored but not done."""
        self._events.extendleft(reversed(self._taken))
        self._taken.clear()
        cursor = (await self._leadership.renew()).cursor
        self.world_is_whole = False
        self.world = World(Cluster(), Queue())
        self.folder = Folder(self.world, self.launch_policy)
        self.folder.receipts = Receipts(await self.store.open_receipts())
        self.ledger = Ledger(await self.store.ledger())
        self.past = Past(await self.store.usage(), await self.store.user_usage())
        self.upkeep = Upkeep(self.folder, self.machines, self.configured.grace)
        self.dispatcher = self._new_dispatcher()
        self._hived = HivedConfigured(None)
        await self._configure()
        await self._close_nodes()
        records = await self.store.load_live()
        jobs = [Job.from_record(record) for record in records if record.run.roles]
        await know_groups(self.store, jobs)
        self.world.jobs = {job.id: job for job in jobs}
        await self.recovering()
        for inventory in await self.machines.look(self._leadership.epoch, self.clock.now()):
            self.world.cluster.apply(inventory)
        self.intents = Intents(self.store, self.folder, cursor)
        now = self.clock.now()
        for job in sorted(jobs, key=lambda job: job.run.placed_at or inf):  # HiveD must account for gangs in this order
            self._adopt(job)
        await self._recall_losses()
        self.world.cluster.apply(UsageRecalled(tuple(self.past.written.values()), tuple(self.past.of_users)))
        for waiting in self.folder.receipts.beneficiaries():
            if self.world.queue.waiting(waiting):
                self.world.queue.apply(GangNominated(waiting))
        for job in jobs:
            if job.run.hold == DEPENDENCY:
                await self.intents.settle(job, now)
        self._rung = True
        outbox = await self.store.outbox()
        self._miss_lost_attempts(jobs, {row.command.attempt for row in outbox})
        self.dispatcher.feed(outbox)
        self.world_is_whole = True

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.configured.policy

    async def _configure(self) -> None:
        """Apply the documents as they are stored now."""
        await self.configured.load()
        self.machines.following = self.configured.following
        self.world.cluster.apply(self.configured.told())
        self.world.queue.apply(self.configured.told())
        if self._hived != self.configured.hived:
            self._hived = self.configured.hived
            self.world.cluster.apply(msgspec.structs.replace(self._hived, at=self.clock.now()))
            self._tell_demoted()
        self.world.plan_wanted = True

    async def _recall_losses(self) -> None:
        """Tell HiveD which jobs lost their guarantee before this start, when, and to which job."""
        hived = self.world.cluster.hived
        for job in hived.lost() if hived is not None else ():
            told = await self.store.events_of(job, kinds=(GUARANTEE_LOST,))
            at = datetime.fromisoformat(told[0].at).timestamp() if told else -inf
            if hived is not None and at >= (self.world.jobs[job].run.placed_at or 0.0) - 0.001:
                hived.recall_loss(job, str(told[0].data.get("preemptor", "")), at)

    def _tell_demoted(self) -> None:
        """Tell the jobs that lost their guarantee through a new configuration of cells."""
        hived = self.world.cluster.hived
        if hived is not None:
            why = "the new configuration has no cell of its virtual cluster for it"
            self.folder.lost_guarantee(hived.demoted(), why, self.clock.now())

    def _take_back(self, now: float) -> None:
        """Preempt jobs above their queues' new limits or on cells owed to others, if the author asked for it."""
        by, self.intents.preempting = self.intents.preempting, ""
        if by:
            for eviction in (*over_limit(self.world.cluster, now), *fragmenting(self.world.cluster, now)):
                self.evict(eviction, now, by_user=by)

    async def _close_nodes(self) -> None:
        """Apply the stored cordons; the tasks on cordoned nodes are checked in the next step."""
        for seen in await self.machines.read_cordons():
            self.world.cluster.apply(seen)
        self.folder.policy = msgspec.structs.replace(self.launch_policy, closed_nodes=frozenset(self.machines.cordons))
        self.world.plan_wanted = True
        self._next_upkeep = 0.0

    def _new_dispatcher(self) -> Dispatcher:
        return Dispatcher(
            {**self.engines, EXTERNAL: self.external},
            self._render,
            self._engine_of,
            self._refused,
            self.clock,
            self._leadership.left,
            self.report,
        )

    def _engine_of(self, attempt: AttemptId) -> str:
        job = self.world.jobs.get(parse_attempt_id(attempt).job)
        return EXTERNAL if job is not None and job.run.external else self.machines.engine_of(attempt)

    def _miss_lost_attempts(self, jobs: list[Job], pending: set[AttemptId]) -> None:
        """Report the end of started attempts that no engine knows: their machine has restarted (a power cut)."""
        known = pending.union(*(engine.attempts() for engine in self.engines.values()))
        for job in jobs:
            if job.run.external:
                continue
            for task in job.tasks.values():
                attempt = job.run.attempt_of(task)
                if task.holds and task.state in _STARTED and attempt not in known:
                    lost = "the machine has no record of the task any more; it restarted while the task ran"
                    self._events.append(Exited(attempt, self.clock.now(), NODE_LOST, reason=lost))

    def _adopt(self, job: Job) -> None:
        self.world.jobs[job.id] = job
        self.world.set_timer(job.run.wake_at, job.id)
        self.folder.adopt(job, self.clock.now())

    async def _cycle(self) -> None:
        now = self.clock.now()
        if self._rung:
            self._rung = False
            if await self.intents.fold(now):
                self._ring()
            if self.intents.reconfigure:
                self.intents.reconfigure = False
                await self._configure()
                self._take_back(now)
            if self.intents.cordons_changed:
                self.intents.cordons_changed = False
                await self._close_nodes()
        self._fold_engine_events(now)
        for job_id in self.world.due(now):
            if (job := self.world.jobs.get(job_id)) is not None:
                self.folder.event(job, TimePassed(), now)
        if self._next_upkeep is not None and self._next_upkeep <= now:
            self._next_upkeep = self.upkeep.look(now)
        if self.world.plan_wanted or (self._plan_again is not None and self._plan_again <= now):
            self._plan(now)
        self.ledger.fold(self.folder.draft, self._loans(), now)
        self.past.fold(self.folder.draft, self.world.cluster.queues, now)
        await self._commit()

    def _loans(self) -> Loans:
        """The devices lent between queues. Owned devices are counted again only after a new configuration."""
        ownership = self.world.cluster.ownership
        if self._owned is None or self._owned[0] is not ownership:
            self._owned = (ownership, owned_devices(ownership))
        return lending(self.world.cluster.queues, self._owned[1])

    def _fold_engine_events(self, now: float) -> None:
        for _ in range(min(len(self._events), _EVENTS_AT_ONCE)):
            event = self._events.popleft()
            self._taken.append(event)
            match event:
                case Started() | Exited() | StartRefused():
                    self.folder.engine_event(event, now)
                case PlaceLost():
                    self.folder.place_lost(event, now)
                case EngineLost(engine=engine, reason=reason):
                    self.world.cluster.apply(EngineUnknown(engine, reason))
                case InventoryChanged():
                    self.machines.stale = True
                case Noted():
                    self.folder.noted(event, now)
        if self._events:
            self._awake.set()

    def _plan(self, now: float) -> None:
        self.world.plan_wanted = False
        proposal = plan(self.world.cluster, self.world.queue, self.policy, now)
        carry_out(self.world.cluster, self.world.queue, proposal, now, _InJobs(self, now))
        if proposal.placements and self.machines.tainted:
            self._next_upkeep = now
        self._plan_again = proposal.again_at
        for job_id, reasons in proposal.reasons.items():
            self._explain(JobId(job_id), reasons)

    def evict(self, eviction: Eviction, now: float, *, by_user: str = "") -> None:
        """Preempt a gang. The scheduler assigns its devices to the preemptor once they are free."""
        job = self.world.jobs.get(eviction.job)
        if job is not None:
            grace = self.configured.grace(job.terms.queue, self.launch_policy.grace_of(job.view))
            eviction = msgspec.structs.replace(eviction, message=self.world.in_names(eviction.message))
            event = Preempted(
                eviction.job_attempt,
                eviction.rule,
                eviction.message,
                eviction.tasks,
                by=eviction.by,
                grace_seconds=grace,
            )
            self.folder.have_yield(job, event, from_eviction(eviction, by_user), now)

    def _explain(self, job_id: JobId, reasons: Reasons) -> None:
        job = self.world.jobs.get(job_id)
        if job is not None:
            job.reasons = self.world.reasons_in_names(reasons)
            self.folder.draft.jobs.add(job_id)

    async def _commit(self) -> None:
        if self.machines.stale:
            for seen in await self.machines.look(self._leadership.epoch, self.clock.now()):
                self.world.cluster.apply(seen)
            self.world.plan_wanted = True
            self._next_upkeep = 0.0
            self._awake.set()
        draft = self.folder.draft
        if draft.empty and not self._must_flush():
            self._taken.clear()
            return
        draft = self.folder.take_draft()
        done, self.dispatcher.done = tuple(self.dispatcher.done), []
        batch = draft.batch(self._leadership.epoch, self._job_writes(draft), done)
        result = await self.store.commit(batch)
        self._flushed = self.clock.now()
        self._taken.clear()
        rows = zip(result.outbox, draft.outbox, strict=True)
        self.dispatcher.feed(OutboxRow(seq, job, command) for seq, (job, command) in rows)
        self._forget_completed(draft)
        self.machines.forget_removed()
        if self.machines.stale:
            self._awake.set()
        for job in draft.removed:
            self.removed(job)
        self.changed(draft.jobs)
        async with self._stored:
            self._stored.notify_all()

    def _must_flush(self) -> bool:
        return bool(self.dispatcher.done) and self.clock.now() - self._flushed >= _FLUSH_SECONDS

    def _job_writes(self, draft: Draft) -> tuple[JobWrite, ...]:
        writes = []
        for job_id in draft.jobs:
            job = self.world.jobs.get(job_id)
            if job is None or job_id in draft.removed:
                continue
            job.run = job.spread.written(job.run)
            state = phase(job.run)
            job.summary = summarize(job.summary, job.run, state, standing(job, state, self.world.jobs))
            sizes = {"devices_held": devices(job.spread.millis)}
            if job.run.roles:
                sizes["devices"] = devices(job.asked_millis())
            job.summary = msgspec.structs.replace(job.summary, **sizes)
            write = JobWrite(job_id, job.run, state, job.summary, live=not job.completed, guard=job.revision)
            if job_id in draft.edited:
                terms = job.terms
                write = msgspec.structs.replace(write, priority=terms.priority, queue=terms.queue, doc=job.text)
            writes.append(write)
            job.revision += 1
        return tuple(writes)

    def _forget_completed(self, draft: Draft) -> None:
        for job_id in draft.jobs:
            job = self.world.jobs.get(job_id)
            if job is not None and job.completed:
                del self.world.jobs[job_id]

    async def _wait(self) -> None:
        """Sleep until a wake-up, a timer, or the time to delete finished commands from the outbox."""
        if self._rung or self._awake.is_set():
            self._awake.clear()
            await asyncio.sleep(0)
            return
        timeout = _LOOK_SECONDS
        if self.world.next_timer is not None:
            timeout = min(timeout, max(0.0, self.world.next_timer - self.clock.now()))
        for at in (self._next_upkeep, self._plan_again):
            if at is not None:
                timeout = min(timeout, max(0.0, at - self.clock.now()))
        if self.dispatcher.done or not self.dispatcher.idle:
            timeout = min(timeout, _FLUSH_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._awake.wait()
        self._awake.clear()

    async def _listen(self) -> None:
        while True:
            await self.store.wakeup.wait(_LOOK_SECONDS)
            self._ring()

    async def retire(self, ended_before: float, limit: int) -> list[JobId]:
        """Retire up to `limit` jobs that ended before a time; raises like the store's `retire`."""
        return await self.store.retire(
            self._leadership.epoch, ended_before=ended_before, now=self.clock.now(), limit=limit
        )

    def troubles(self) -> list[str]:
        """The problems that keep this control from working, one sentence each."""
        if not self.ready.is_set():
            return []
        found = []
        if not self._leadership.left():
            found.append(
                "The scheduler does not know whether it still leads: the database takes no renewal of its lease."
            )
        silent = time.monotonic() - self._cycled
        if silent > _SILENT_SECONDS:
            found.append(f"The scheduler has finished no cycle for {silent:.0f} s; see control.log.")
        return found

    async def cycled(self) -> None:
        """Wait until the next commit."""
        async with self._stored:
            await self._stored.wait()

    def wake(self) -> None:
        """Read the store at once."""
        self._ring()

    def _ring(self) -> None:
        self._rung = True
        self._awake.set()

    def report(self, event: EngineEvent) -> None:
        """Take an event of a task from a source other than an engine."""
        self._events.append(event)
        self._awake.set()

    async def _watch(self, engine: Engine) -> None:
        async for event in engine.watch():
            self.report(event)

    def _refused(self, event: StartRefused | PlaceLost) -> None:
        self._events.append(event)
        self._awake.set()

    async def _render(self, attempt: AttemptId) -> TaskLaunch | None:
        return await render(self.world, attempt, self.context)


async def _nothing() -> None:
    return


async def _no_object(job: JobId, replicas: int) -> bool:
    return False
