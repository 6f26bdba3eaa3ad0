"""The YARN engine: services and slots over REST, for control. The package's other modules have the parts.

An attempt is started by a slot that asks for it; before, a record in HDFS says which container has it. So the next
server finds every attempt, and none is ever given to two containers. An end is reported when the slot has sent the whole
log, or when YARN says that its container is gone.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal as signals
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Final

from corral.engines.base import ExecSession
from corral.engines.yarn.attempt_events import AttemptEvents
from corral.engines.yarn.cluster_use import ClusterUseReader
from corral.engines.yarn.cluster_watch import ClusterWatch
from corral.engines.yarn.device_probe import DeviceProbe
from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.hadoop_version import hadoop_version
from corral.engines.yarn.host_ports import HostPorts
from corral.engines.yarn.job_loops import JobLoops
from corral.engines.yarn.node_agents import NodeAgents
from corral.engines.yarn.orders import check_launch, check_level, check_resources, order_of
from corral.engines.yarn.records import BURIED, AttemptRecords, Holder
from corral.engines.yarn.service_spec import shape_of
from corral.engines.yarn.services import Services
from corral.engines.yarn.sessions import Sessions, SlotSession
from corral.engines.yarn.settings import YarnSettings
from corral.engines.yarn.shared import shared_by, shared_shape
from corral.engines.yarn.slot_grants import SlotGrants
from corral.engines.yarn.slot_messages import AgentTold, AttemptReport, Probed, SlotHello, SlotState
from corral.engines.yarn.slot_tokens import SlotTokens
from corral.engines.yarn.slots import Attempt, Phase, Slot, SlotTable, slot_key
from corral.kernel.errors import (
    Conflict,
    CorralError,
    InvalidInput,
    NotFound,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from corral.kernel.ids import AttemptId, JobId
from corral.model.cluster_use import ClusterUse
from corral.model.inventory import Inventory
from corral.model.launch import EngineEvent, InventoryChanged, Started, TaskLaunch
from corral.storage.log_files import LogStore

SLOT_LOST: Final = -101
"""Code of the exit table: the container is gone (transient)."""
_log = logging.getLogger(__name__)
_ASSIGN_SECONDS: Final = 1.0
"""Seconds for which a start waits for a slot that is there, before the caller is told to ask again."""
_MOST_WAIT: Final = 30.0
"""Seconds for which a slot's call for orders is held at most."""

_CALLS_AGAIN_SECONDS: Final = 30.0
"""Seconds for which a session waits for a container that has not called since this server began."""


class YarnEngine:
    """Runs tasks in containers of one Hadoop cluster."""

    def __init__(
        self,
        settings: YarnSettings,
        *,
        secret: bytes,
        logs: LogStore,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`secret` is the server's for this engine: the tokens of services and slots are signed with it."""
        self.name = settings.name
        self._settings, self._logs = settings, logs
        self._yarn = HadoopRest("ResourceManager", settings.resource_managers, settings.user, settings.identity)
        self._files = HadoopRest("NameNode", settings.file_systems, settings.user, settings.identity)
        self._tokens = SlotTokens(secret)
        self._table = SlotTable()
        self._sessions = Sessions()
        self._grants = SlotGrants(self._table, HostPorts(*settings.ports), lambda: self._watch.hosts)
        self._events = AttemptEvents(logs, wall, settings.log_limit_bytes, self._grants.take_back)
        self._records = AttemptRecords(self._files, f"{settings.folder}/{settings.server}/attempts")
        self._services = Services(settings, self._yarn, self._files, self._tokens)
        self._loops = JobLoops(
            settings,
            self._table,
            self._services,
            self._records,
            self._events,
            self._grants,
            self._lose,
            self._spawn,
            lambda: self._watch.nodes,
        )
        self._watch = ClusterWatch(
            settings, self._yarn, self._services, self._table, self._inventory_changed, self._lose_key, self._loops.ring
        )
        self._probe = DeviceProbe(settings, self._services, self._files, lambda: self._watch.nodes, wall)
        self._watch.probed = self._probe.found
        self.node_agents = NodeAgents(
            settings, self._services, self._tokens, lambda: self._watch.nodes, lambda: self._watch.hosts, wall
        )
        self._use = ClusterUseReader(settings, self._yarn)
        self._tasks: set[asyncio.Task[None]] = set()
        self._serving = False
        """Whether slots are answered: what they run is known from `open` to `close`."""

    # ---- the engine protocol

    async def open(self) -> None:
        """Find attempts that still run. Afterwards `watch` reports every attempt that was not forgotten.

        Raises a CorralError when the cluster cannot be read.
        """
        self._logs.open()
        try:
            await self._services.stage_programs()
            await self._records.open()
            found = await self._services.all()
            for attempt, holder in (await self._records.all()).items():
                known = Attempt(attempt, Phase.ASSIGNED, holder.container, shared=holder.shared, since=_now())
                self._table.attempts[attempt] = known
                if holder.container == BURIED:
                    self._events.end(known, 128 + signals.SIGTERM, "it was stopped before it started")
            for service in found:
                self._loops.adopt(service, _now())
            await self._probe.open()
            await self.node_agents.open()
            await self._watch.look()
        except BaseException:
            await self._end_tasks()
            self._table.attempts.clear()
            self._table.services.clear()
            raise
        self._serving = True
        self._spawn(self._watch.run())
        self._spawn(self._probe.run())
        self._spawn(self.node_agents.run())

    async def close(self) -> None:
        """Release all resources without ending a task."""
        self._serving = False
        await self._end_tasks()
        for slot in self._table.slots.values():
            slot.wake.set()
        await self._yarn.close()
        await self._files.close()

    def attempts(self) -> frozenset[AttemptId]:
        """Return every attempt that has a record, or an end that was not forgotten."""
        return frozenset(name for name, each in self._table.attempts.items() if each.phase is not Phase.PENDING)

    async def inventory(self) -> Inventory:
        """Return all nodes as last seen. Raises Unavailable when the ResourceManager has never answered."""
        if self._watch.inventory is None:
            raise Unavailable("hadoop-unreachable", "The ResourceManager has not answered yet.")
        return self._watch.inventory

    async def version(self) -> str:
        """Return the version of Hadoop that the ResourceManager runs. Raises a CorralError."""
        try:
            return await hadoop_version(self._yarn)
        except (LookupError, TypeError):
            raise Unavailable(
                "hadoop-unreachable", "What answers at yarn_resource_managers is no ResourceManager."
            ) from None

    async def cluster_use(self) -> ClusterUse:
        """Return YARN's queues and the applications that are not Corral's. Raises Unavailable."""
        return await self._use.read()

    async def start(self, launch: TaskLaunch) -> None:
        """Give the attempt to a slot, unless one has it.

        Raises Unavailable until one has it: repeat the call; another CorralError for a task that YARN does not run.
        """
        attempt = self._table.attempts.get(launch.attempt)
        if attempt is None:
            check_launch(launch, self._settings)
            shape = shape_of(launch, self.name, self._watch.nodes)
            check_level(launch, shape, self._settings)
            check_resources(shape, self._watch.resource_types, self._settings)
            devices = tuple(each.index for each in launch.devices) if shape.node else ()
            shared = shared_by(launch, shape, self._settings)
            attempt = Attempt(
                launch.attempt, Phase.PENDING, shared=shared, launch=launch, since=_now(), devices=devices
            )
            attempt.shape = shared_shape(shape) if shared else shape
            self._table.attempts[launch.attempt] = attempt
            self._events.prepare(attempt)
            self._loops.begin(attempt.owner)
        elif attempt.phase is not Phase.PENDING:
            return
        self._loops.ring(attempt.owner)
        try:
            async with asyncio.timeout(_ASSIGN_SECONDS):
                await attempt.assigned.wait()
        except TimeoutError:
            raise self._delay(attempt) from None

    def _delay(self, attempt: Attempt) -> CorralError:
        """Why an attempt has no container yet; a refusal that will not pass ends it."""
        trouble = attempt.trouble
        if trouble is not None and not isinstance(trouble, Unavailable):
            if attempt.phase is Phase.PENDING:
                del self._table.attempts[attempt.name]
            return trouble
        node = attempt.shape.node if attempt.shape is not None else ""
        message = f"It waits for YARN to give a container{f' on {node}' if node else ''}."
        return Unavailable("container-awaited", trouble.message if trouble is not None else message)

    def withdraw(self, attempt: AttemptId) -> bool:
        """Give up a start that no slot has yet; returns whether none will get it."""
        found = self._table.attempts.get(attempt)
        if found is not None and found.phase is not Phase.PENDING:
            return False
        if self._table.attempts.pop(attempt, None) is not None and found is not None:
            self._loops.ring(found.owner)
        return True

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        """End the attempt: send `signal`, then KILL after the grace. One never started ends at once, for good."""
        number = _signal_number(signal)
        found = self._table.attempts.get(attempt)
        # one that is buried and has not ended has no record yet: HDFS did not take it
        if found is None or found.phase is Phase.PENDING or (found.container == BURIED and found.exited is None):
            found = found or Attempt(attempt, Phase.PENDING, since=_now())
            self._table.attempts[attempt] = found
            found.phase, found.container = Phase.ASSIGNED, BURIED
            await self._records.write(attempt, Holder(BURIED, found.shared))
            await self._remove_unanswered(found)
            self._events.end(found, 128 + number, "it was stopped before it started")
            return
        if found.exited is None and found.stop is None:
            found.stop = (number, grace_seconds)
            if slot := self._table.slots.get(found.slot):
                slot.wake.set()

    async def forget(self, attempts: Sequence[AttemptId]) -> None:
        """Drop the records of these attempts. Raises Conflict when one of them still runs."""
        for attempt in attempts:
            found = self._table.attempts.get(attempt)
            if found is None:
                continue
            if found.exited is None:
                raise Conflict("still-running", f"{attempt} still runs; stop it before it can be forgotten.")
            await self._records.remove(attempt, Holder(found.container, found.shared))
            await self._remove_unanswered(found)
            self._table.attempts.pop(attempt, None)
            if slot := self._table.slots.get(found.slot):
                slot.attempts.discard(attempt)
                slot.wake.set()
            if self._table.services_of(found.owner):
                self._loops.ring(found.owner)

    async def _remove_unanswered(self, found: Attempt) -> None:
        """Remove the record of a container that did not get the attempt: HDFS may have taken it without an answer."""
        if found.recorded not in ("", found.container):
            await self._records.remove(found.name, Holder(found.recorded, found.shared))

    def job_over(self, job: JobId) -> None:
        """Note that a job is over: its containers are given back at once."""
        self._loops.over(job)

    def live_jobs(self, jobs: frozenset[JobId]) -> None:
        """Note all jobs that are not over."""
        self._loops.keep_only(jobs)

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """Yield events from now on. One reader at a time. Raises CorralError when a part of the engine has failed."""
        while True:
            event = await self._events.queue.get()
            if isinstance(event, CorralError):
                raise event
            yield event

    async def exec(self, attempt: AttemptId, argv: Sequence[str], *, tty: bool) -> ExecSession:
        """Run a command beside the task. Raises NotFound when the attempt is not running here."""
        return self._open_session(attempt, await self._slot_of(attempt), {"argv": list(argv), "tty": tty})

    async def connect(self, attempt: AttemptId, port: int) -> ExecSession:
        """Open a TCP connection to one of the task's ports. Raises NotFound when it has no such port."""
        slot = await self._slot_of(attempt)
        found = self._table.attempts[attempt]
        given = found.started.ports.values() if found.started is not None else ()
        if given and not any(port in numbers for numbers in given):
            raise NotFound("no-such-port", f"{attempt} was not given port {port}.")
        return self._open_session(attempt, slot, {"port": port})

    # ---- the calls of slots

    async def hello(self, token: str, identity: SlotHello) -> str:
        """Admit a slot; returns its own token.

        Raises Unauthenticated, NotFound for a service or component that is not there, TooManyRequests.
        """
        self._require_open()
        if self._tokens.service(token) != identity.service:
            raise Unauthenticated("slot-refused", "This token is of another service.")
        service = self._table.services.get(identity.service)
        component = identity.instance.rpartition("-")[0]
        if service is None or service.ending or component not in service.components:
            raise NotFound("no-service", "There is no such service of this server.")
        slot = self._table.slots.get(slot_key(service.job, identity.container))
        if slot is None:
            if not self._table.has_room(service, component):
                raise TooManyRequests("too-many-slots", "This service has more containers than it was asked for.")
            slot = Slot(identity.service, service.job, component, identity.instance, identity.container, identity.host)
            slot.idle_since = _now()
            for gone in self._table.add_slot(slot):
                self._lose(gone)
        slot.seen = _now()
        self._loops.ring(service.job)
        return self._tokens.of_slot(slot.key)

    def probed(self, token: str, told: Probed) -> None:
        """Take over what a probe tells of its node's devices. Raises Unauthenticated, NotFound, InvalidInput."""
        self._require_open()
        if self._tokens.service(token) != told.service:
            raise Unauthenticated("slot-refused", "This token is of another service.")
        self._probe.take(told.service, told.instance, told.report)

    def agent_told(self, token: str, told: AgentTold) -> None:
        """Take over what is told of a node's agent. Raises Unauthenticated, NotFound."""
        self._require_open()
        if self._tokens.service(token) != told.service:
            raise Unauthenticated("slot-refused", "This token is of another service.")
        self.node_agents.take(told.service, told.instance, told.report)

    async def sync(self, token: str, state: SlotState) -> Any:
        """Fold a slot's state; returns its orders, at most `state.wait` seconds later. Raises Unauthenticated."""
        slot = self._slot(token)
        slot.seen = _now()
        slot.reported = state.attempts
        for name, report in state.attempts.items():
            self._fold(slot, AttemptId(name), report)
        deadline = _now() + min(state.wait, _MOST_WAIT)
        orders = self._orders(slot)
        while not orders and _now() < deadline and self._serving and slot.key in self._table.slots:
            slot.wake.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await slot.wake.wait()
            except TimeoutError:
                break
            orders = self._orders(slot)
        slot.seen = _now()
        return orders

    async def append_log(self, token: str, attempt: AttemptId, stream: str, offset: int, data: bytes) -> int:
        """Store a part of a log; returns the offset of the part wanted next. Raises Unauthenticated, NotFound."""
        slot = self._slot(token)
        found = self._table.attempts.get(attempt)
        if found is None or found.slot != slot.key:
            raise NotFound("no-attempt", "This slot has no such attempt.")
        return await self._events.append(found, stream, offset, data)

    def session_of(self, token: str, session: str) -> SlotSession:
        """The session of a slot, for its two streams. Raises Unauthenticated, NotFound."""
        return self._sessions.get(session, self._slot(token).key)

    # ---- what follows from them

    def _fold(self, slot: Slot, name: AttemptId, report: AttemptReport) -> None:
        attempt = self._table.attempts.get(name)
        if attempt is None or attempt.slot != slot.key or attempt.exited is not None:
            return
        if attempt.shape is None:
            service = self._table.services.get(slot.service)
            attempt.shape = service.components[slot.component] if service is not None else None
            attempt.devices = report.devices
        self._grants.see(attempt, slot, report)
        if report.state in ("running", "ended") and attempt.started is None and report.pid:
            process = f"{slot.container}:{report.pid}"
            self._events.start(attempt, Started(name, report.at, slot.host, report.ports, process))
        if report.state == "lost":
            self._events.end(attempt, SLOT_LOST, "its YARN container was started again")
        elif report.state == "ended":
            self._events.end(attempt, report.code, report.reason, report.signal)
        if attempt.exited is not None:
            slot.idle_since = _now()
            self._loops.ring(slot.job)

    def _orders(self, slot: Slot) -> dict[str, Any]:
        """What the slot is to do now; empty for nothing."""
        orders: dict[str, Any] = {}
        forget = [name for name in slot.reported if AttemptId(name) not in self._table.attempts]
        if forget:
            orders["forget"] = forget
        for attempt in [self._table.attempts[name] for name in slot.attempts if name in self._table.attempts]:
            if attempt.exited is not None or attempt.phase is Phase.PENDING:
                continue
            report = slot.reported.get(attempt.name)
            if report is None and attempt.launch is not None:
                orders.setdefault("start", []).append(order_of(attempt, attempt.launch, self._settings, slot.host))
            elif report is None:
                self._events.end(attempt, SLOT_LOST, "the server that started it ended before its slot had begun it")
            if attempt.stop is not None and not (report is not None and report.stopping):
                order = {"attempt": attempt.name, "signal": attempt.stop[0], "grace": attempt.stop[1]}
                orders.setdefault("stop", []).append(order)
        if slot.sessions:
            orders["sessions"], slot.sessions = slot.sessions, []
        if slot.releasing:
            orders["release"] = True
        return orders

    def _lose(self, slot: Slot) -> None:
        self._lose_key(slot.key)

    def _lose_key(self, key: str) -> None:
        """End the attempt of a slot whose container is gone."""
        if (slot := self._table.slots.pop(key, None)) is not None:
            slot.wake.set()
        self._sessions.end(key)
        for attempt in self._table.attempts.values():
            if attempt.slot == key and attempt.exited is None:
                self._events.end(attempt, SLOT_LOST, "its YARN container is gone")

    def _inventory_changed(self) -> None:
        self._events.queue.put_nowait(InventoryChanged(self.name))

    # ---- small things

    async def _slot_of(self, attempt: AttemptId) -> Slot:
        """The slot where an attempt runs; that of an earlier server's attempt is waited for. Raises NotFound."""
        deadline = _now() + _CALLS_AGAIN_SECONDS
        while (found := self._table.attempts.get(attempt)) is not None and found.exited is None:
            slot = self._table.slots.get(found.slot)
            if slot is not None and found.started is not None:
                return slot
            if found.launch is not None or _now() >= deadline:
                break
            await asyncio.sleep(0.1)
        raise NotFound("not-running", f"{attempt} is not running on this cluster.")

    def _open_session(self, attempt: AttemptId, slot: Slot, order: dict[str, Any]) -> ExecSession:
        name = secrets.token_hex(16)

        def tell(**more: Any) -> None:
            slot.sessions.append({"session": name, "attempt": attempt, **more})
            slot.wake.set()

        session = self._sessions.open(name, slot.key, order.get("port", 0), lambda: tell(close=True))
        tell(**order)
        return session

    def _slot(self, token: str) -> Slot:
        """The slot that has a token. Raises Unauthenticated; Unavailable while the engine is not open."""
        self._require_open()
        slot = self._table.slots.get(self._tokens.slot(token))
        if slot is None:
            raise Unauthenticated("slot-refused", "This slot's token is not valid any more.")
        return slot

    def _require_open(self) -> None:
        if not self._serving:
            raise Unavailable("engine-closed", "This server does not serve slots at the moment.")

    async def _end_tasks(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._failed)

    def _failed(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            name = getattr(task.get_coro(), "__qualname__", "a part of it")
            _log.error("%s failed", name, exc_info=error)
            message = f"The engine {self.name} cannot go on: {name} failed with {type(error).__name__}, see the log."
            self._events.queue.put_nowait(CorralError("engine-failed", message))


def _now() -> float:
    return asyncio.get_running_loop().time()


def _signal_number(name: str) -> int:
    try:
        return int(signals.Signals[name if name.startswith("SIG") else f"SIG{name}"])
    except KeyError:
        raise InvalidInput("unknown-signal", f"There is no signal {name}; TERM, INT and USR1 are usual.") from None
