"""The control loop: read inputs, step the core, commit in one transaction, then act.

The order is the guarantee: nothing is done that was not stored, and what was stored is done at least once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import structlog

from corral.control.configuration import NothingDescribed, Presenter, read_configured
from corral.control.core import (
    Batch,
    ConfigurationRead,
    CordonsRead,
    Core,
    Input,
    InputsLocated,
    InputsSought,
    Machines,
    Recovered,
    World,
    missing_attempts,
)
from corral.control.core.configuration import Configured
from corral.control.core.inputs import TaskEvent
from corral.control.core.intents import IntentsRead
from corral.control.core.world import held_nodes
from corral.control.dispatcher import Dispatcher
from corral.control.engine_set import EngineSet
from corral.control.estimates.keeper import EstimateKeeper
from corral.control.external_jobs import EXTERNAL, ExternalTasks
from corral.control.inventories import Inventories
from corral.control.journal_keeper import JournalKeeper
from corral.control.lease import Leadership
from corral.control.metrics.decision_counts import DecisionCounts
from corral.control.recovery import read_intents, read_losses, read_recovered
from corral.control.task_launch import LaunchContext, render
from corral.engines.base import Engine
from corral.kernel.clock import Clock
from corral.kernel.errors import Conflict, Unavailable
from corral.kernel.ids import AttemptId, JobId, parse_attempt_id
from corral.launcher import LaunchPolicy
from corral.model.cordons import CORDONS_CHANGED
from corral.model.document_revisions import CONFIGURED
from corral.model.events import PlaceLost, StartRefused
from corral.model.inventory import Node
from corral.model.launch import EngineEvent, InventoryChanged, TaskLaunch
from corral.model.store_writes import ControlBatch, Intent, OutboxRow
from corral.scheduler import Policy
from corral.spec.storage import StorageDocument
from corral.store import LeadershipLost, Store

log = structlog.get_logger()

_EVENTS_AT_ONCE = 1000
_INTENTS_AT_ONCE = 500
_FLUSH_SECONDS = 0.5
"""Seconds that rows of carried-out commands may stay in the outbox while nothing else is written."""
_SILENT_SECONDS = 15.0
"""Seconds without a finished cycle after which a leader reports a problem."""
_LOOK_SECONDS = 2.0
"""Seconds between two reads of the store when no wake-up arrives, in case one is lost."""


class Control:
    """The shell around a core: lease, wake-ups, engines, and the store that each step is written to."""

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
        journal: JournalKeeper | None = None,
    ) -> None:
        """`policy` applies while no document sets another; `presenter` makes engines follow Cluster documents.

        A node that is not ready for `not_ready_seconds` is lost to the gangs on it.
        """
        self.store = store
        self.engines = engines
        self.clock = clock
        self.launch_policy = launch_policy
        self.context: LaunchContext
        self.presenter = presenter or NothingDescribed()
        self._policy = policy
        nothing = Recovered(Configured(policy))
        self.core = Core(nothing, launch_policy, Machines(not_ready_seconds), clock.now())
        """What control knows; another one after every recovery."""
        self.engine_set = EngineSet(engines, self.report, self._opened_late)
        self.inventories = Inventories(store, engines, self.engine_set.away, self.presenter.completed)
        self._leadership = leadership
        self._journal = journal
        self._events: deque[EngineEvent | StartRefused | PlaceLost | InputsLocated] = deque()
        self._taken: list[TaskEvent | InputsLocated] = []
        """The events of the step that is not stored yet."""
        self._awake = asyncio.Event()
        self._stored = asyncio.Condition()
        self._rung = True
        self._must_recover = False
        """Whether an engine was opened that the core knows nothing of."""
        self._flushed = 0.0
        self._cycled = time.monotonic()
        self._changes = 0
        """How often the core got to know something, or decided something."""
        self.scale_object: Callable[[JobId, int], Awaitable[bool]] = _no_object
        """Sets the replicas in the object that a job was made from; returns whether there is one."""
        self.external = ExternalTasks(self.report, clock.now)
        self.dispatcher = self._new_dispatcher()
        self.ready = asyncio.Event()
        """Set once it leads and has loaded all jobs; it stays set."""
        self.world_is_whole = False
        """Whether questions can be answered from the core: not while everything is read again."""
        self.removed: Callable[[JobId], None] = lambda job: None
        """Called when a job and its history were deleted from the store."""
        self.recovering: Callable[[frozenset[JobId]], Awaitable[None]] = _nothing
        """Awaited before the machines are looked at, with those live jobs that somebody's own controller runs."""
        self.seek_inputs: Callable[[IntentsRead], Sequence[InputsSought]] = lambda read: ()
        """Begins to locate the inputs of new jobs; returns what the core is told before them."""
        self.changed: Callable[[Iterable[JobId]], None] = lambda jobs: None
        """Called after a commit with the jobs that changed."""
        self.estimates = EstimateKeeper(store, clock)
        """Is told of estimates of starts as they are handed out, and corrects them by what came true of earlier ones."""
        self.on_stored: list[Callable[[ControlBatch], None]] = []
        """Each is called with each batch once it is stored; none may raise."""
        self.on_intents: Callable[[Sequence[Intent]], None] = lambda intents: None
        """Called with the requests and reports that are read, before the core folds them; it must not raise."""
        self.counts = DecisionCounts()
        """What it has decided since its start, for the metrics."""

    @property
    def journal_folder(self) -> Path | None:
        """Where the journal of its decisions is; None if it keeps none."""
        return None if self._journal is None else self._journal.folder

    @property
    def world(self) -> World:
        """All jobs that are not over, the cluster and the queue."""
        return self.core.world

    @property
    def machines(self) -> Machines:
        """The nodes as they were last seen."""
        return self.core.machines

    @property
    def configured(self) -> Configured:
        """The configuration in force."""
        return self.core.configured

    @property
    def policy(self) -> Policy:
        """The scheduling policy in force."""
        return self.core.policy

    @property
    def epoch(self) -> int:
        """The number of its lease: how often a control has begun to lead."""
        return self._leadership.epoch

    @property
    def revision(self) -> str:
        """The revision of what the core knows; states of equal revisions differ in nothing but the time."""
        return f"{self._leadership.epoch}.{self._changes}"

    def node(self, name: str) -> Node | None:
        """A node as it was last seen."""
        return self.core.machines.node(name)

    def storage(self, name: str) -> StorageDocument | None:
        """The document of a storage, as it is in force."""
        return self.core.configured.storage(name)

    def image_pull_secrets(self, queue: str) -> tuple[str, ...]:
        """The registry secrets of a queue, as they are in force."""
        return self.core.configured.image_pull_secrets(queue)

    def compile_cache(self, queue: str) -> tuple[str, str] | None:
        """The default of `compileCache` for a queue's jobs and the queue that sets it, as it is in force."""
        return self.core.configured.compile_cache(queue)

    def engine_of(self, attempt: AttemptId) -> str:
        """The engine that has an attempt.

        Raises CorralError if there is none.
        """
        return self.inventories.engine_of(attempt, self.core.world.jobs)

    async def run(self) -> None:
        """Lead until cancelled.

        Raises LeadershipLost when another control begins an epoch.
        """
        await self._leadership.acquire()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._leadership.keep())
            for loop in self.engine_set.loops():
                group.create_task(loop)
            await self.engine_set.begin()
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
                self._must_recover = False
                await self._recover()
                self.ready.set()
                while not self._must_begin_anew:
                    await self._cycle()
                    self._cycled = time.monotonic()
                    await self._wait()
                await self.dispatcher.close()
            except LeadershipLost:
                raise
            except (Unavailable, Conflict) as error:
                log.warning("reading everything again", code=error.code, message=error.message)
                await self.dispatcher.close()
                await asyncio.sleep(0.1)

    @property
    def _must_begin_anew(self) -> bool:
        return self._must_recover or (self._journal is not None and self._journal.must_begin)

    async def _recover(self) -> None:
        """Build a core from the store alone, and carry on with what was stored and not yet done."""
        self._events.extendleft(reversed(self._taken))
        self._taken.clear()
        cursor = (await self._leadership.renew()).cursor
        self.world_is_whole = False
        self.dispatcher = self._new_dispatcher()
        recovered = await read_recovered(self.store, await self._configuration(), cursor)
        await self.recovering(frozenset(job.id for job in recovered.jobs if job.run.external))
        held = held_nodes(task for job in recovered.jobs for task in job.tasks.values())
        now = self.clock.now()
        machines = self.core.machines.fork()
        machines.following = recovered.configured.following
        seen = await self.inventories.look(machines, held, self._leadership.epoch, now)
        recovered = msgspec.structs.replace(recovered, machines=seen)
        core = Core(recovered, self.launch_policy, machines.fork(), now)
        if lost := core.lost_guarantees():
            recovered = msgspec.structs.replace(recovered, losses=await read_losses(self.store, lost))
        if self._journal is not None:
            self._journal.begin(recovered, self.launch_policy, machines, now)
        self.core = core if not lost else Core(recovered, self.launch_policy, machines, now)
        self.counts.begin(self.core.world.jobs)
        self._changes += 1
        outbox = await self.store.outbox()
        known = {row.command.attempt for row in outbox}.union(*(each.attempts() for each in self.engines.values()))
        known |= self.engine_set.unseen(recovered.jobs)
        self._events.extend(missing_attempts(recovered.jobs, known, now))
        self._rung = True
        self.engine_set.tell_live(recovered.jobs)
        self.dispatcher.feed(outbox)
        self.world_is_whole = True

    async def _configuration(self) -> Configured:
        """The documents as they are stored now, with the machines that they describe presented."""
        return await read_configured(self.store, self.presenter, self._policy, self.core.configured)

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
        job = self.core.world.jobs.get(parse_attempt_id(attempt).job)
        if job is not None and job.run.external:
            return EXTERNAL
        engine = self.engine_of(attempt)
        self.engine_set.require(engine)
        return engine

    async def _cycle(self) -> None:
        inputs = await self._read()
        inputs += self._taken
        rests = self.core.rests(self.clock.now()) and not any(map(_is_news, inputs))
        if rests and (self._journal is None or not self._journal.is_silent):
            await self._commit(Batch())
            return
        step = Core.step if self._journal is None else self._journal.step
        before = self.core.world.planner.revision
        begun = time.perf_counter()
        batch = step(self.core, inputs, self.clock.now())
        self.counts.stepped(time.perf_counter() - begun)
        if batch.changed or self.core.world.planner.revision != before or any(map(_is_news, inputs)):
            self._changes += 1
        for event, data in batch.warnings:
            log.error(event, **data)
        await self._commit(batch)

    async def _read(self) -> list[Input]:
        """What the store and the engines have to say that the core does not know; events are taken beside it."""
        inputs: list[Input] = []
        if self._rung:
            self._rung = False
            read = await read_intents(self.store, self.core, _INTENTS_AT_ONCE)
            self.on_intents(read.intents)
            inputs += self.seek_inputs(read)
            inputs.append(read)
            if len(read.intents) == _INTENTS_AT_ONCE:
                self._ring()
            kinds = {each.kind for each in read.intents}
            if CONFIGURED in kinds:
                inputs.append(ConfigurationRead(await self._configuration()))
                self.inventories.stale = True  # engines that find their nodes themselves do not tell of new documents
            if CORDONS_CHANGED in kinds:
                inputs.append(CordonsRead(await self.store.cordons()))
        self._take_events()
        if self.inventories.stale and not any(isinstance(each, ConfigurationRead) for each in inputs):
            held, epoch = self.core.world.held_nodes(), self._leadership.epoch
            inputs += await self.inventories.look(self.core.machines, held, epoch, self.clock.now())
        return inputs

    def _take_events(self) -> None:
        for _ in range(min(len(self._events), _EVENTS_AT_ONCE)):
            event = self._events.popleft()
            if isinstance(event, InventoryChanged):
                self.inventories.stale = True
            else:
                self._taken.append(event)
        if self._events:
            self._awake.set()

    async def _commit(self, batch: Batch) -> None:
        writes = batch.writes
        if writes is None:
            if not self._must_flush():
                self._taken.clear()
                return
            writes = ControlBatch(0)
        done, self.dispatcher.done = tuple(self.dispatcher.done), []
        begun = time.perf_counter()
        result = await self.store.commit(
            msgspec.structs.replace(writes, epoch=self._leadership.epoch, outbox_done=done)
        )
        self.counts.stored(writes, self.core.world.jobs, time.perf_counter() - begun)
        for call in self.on_stored:
            call(writes)
        self._flushed = self.clock.now()
        self._taken.clear()
        rows = zip(result.outbox, writes.outbox_add, strict=True)
        self.dispatcher.feed(OutboxRow(seq, job, command) for seq, (job, command) in rows)
        self.inventories.stale |= self.core.wants_machines
        self.engine_set.tell_over(writes.jobs)
        for job in writes.removed_jobs:
            self.removed(job)
        self.changed(batch.changed)
        async with self._stored:
            self._stored.notify_all()

    def _must_flush(self) -> bool:
        return bool(self.dispatcher.done) and self.clock.now() - self._flushed >= _FLUSH_SECONDS

    async def _wait(self) -> None:
        """Sleep until a wake-up, a timer, or the time to delete finished commands from the outbox."""
        if self._rung or self._awake.is_set() or self.inventories.stale:
            self._awake.clear()
            await asyncio.sleep(0)
            return
        timeout = _LOOK_SECONDS
        if (at := self.core.next_wakeup()) is not None:
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

    def inputs_located(self, located: InputsLocated) -> None:
        """Take where the inputs of a job are."""
        self._events.append(located)
        self._awake.set()

    def _opened_late(self) -> None:
        self._must_recover = True
        self._awake.set()

    def _refused(self, event: StartRefused | PlaceLost) -> None:
        self._events.append(event)
        self._awake.set()

    async def _render(self, attempt: AttemptId) -> TaskLaunch | None:
        return await render(self.core.world, attempt, self.context)


def _is_news(given: Input) -> bool:
    """Whether an input tells something: the store is read for requests though there are none."""
    return not isinstance(given, IntentsRead) or bool(given.intents)


async def _nothing(external: frozenset[JobId]) -> None:
    return


async def _no_object(job: JobId, replicas: int) -> bool:
    return False
