"""The YARN engine: services and slots over REST, for control. The package's other modules have the parts.

An attempt is started by a slot that asks for it; before, a record in HDFS says which container has it. So the next
server finds every attempt, and none is ever given to two containers. An end is reported when the slot has sent the whole
log, or when YARN says that its container is gone.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import signal as signals
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from corral.engines.base import ExecSession
from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.inventory import inventory_of, nodes_of
from corral.engines.yarn.orders import order_of
from corral.engines.yarn.records import BURIED, AttemptRecords
from corral.engines.yarn.service_spec import (
    CREDENTIALS,
    RUNTIME,
    SCRIPT,
    WRAPPER,
    SlotShape,
    component_name,
    service_name,
    service_of,
    service_prefix,
)
from corral.engines.yarn.sessions import Sessions
from corral.engines.yarn.settings import YarnSettings
from corral.engines.yarn.slots import Attempt, Phase, Service, Slot, SlotTable
from corral.kernel.errors import (
    Conflict,
    CorralError,
    InvalidInput,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from corral.kernel.ids import AttemptId, JobId, parse_attempt_id
from corral.kernel.plug_ins import runtime_modules
from corral.model.inventory import Inventory
from corral.model.launch import EngineEvent, Exited, InventoryChanged, Started, TaskLaunch
from corral.runtime.build import build_runtime
from corral.storage.log_files import LogStore

_log = logging.getLogger(__name__)
SLOT_LOST: Final = -101
START_TIMEOUT: Final = -120
"""Codes of the exit table: the container is gone; YARN gave no container in time (both transient)."""
_ASSIGN_SECONDS: Final = 1.0
"""Seconds for which a start waits for a slot that is there, before the caller is told to ask again."""
_LOOK_SECONDS: Final = 2.0
"""Seconds between two looks at the nodes and the containers."""
_SILENT_SECONDS: Final = 45.0
"""Seconds without a call after which YARN is asked whether a slot's container is still there."""
_MOST_WAIT: Final = 30.0
_MOST_LOG_PART: Final = 1024 * 1024


class YarnEngine:
    """Runs tasks in containers of one Hadoop cluster."""

    def __init__(
        self,
        settings: YarnSettings,
        *,
        key: bytes,
        logs: LogStore,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`key` is the server's, from which the tokens of services and slots are derived."""
        self.name = settings.name
        self._settings, self._key, self._logs, self._wall = settings, key, logs, wall
        self._yarn = HadoopRest("ResourceManager", settings.resource_managers, settings.user)
        self._files = HadoopRest("NameNode", settings.file_systems, settings.user)
        self._records = AttemptRecords(self._files, f"{settings.folder}/{settings.server}/attempts")
        self._table = SlotTable()
        self._sessions = Sessions()
        self._closed = False
        self._events: asyncio.Queue[EngineEvent | CorralError] = asyncio.Queue()
        self._jobs: dict[JobId, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._programs: dict[str, str] = {}
        """The paths in HDFS of the files that all slots run."""
        self._inventory: Inventory | None = None
        self._missing: dict[str, int] = {}
        """By container, how many looks in a row have not found it."""

    # ---- the engine protocol

    async def open(self) -> None:
        """Find attempts that still run. Afterwards `watch` reports every attempt that was not forgotten.

        Raises a CorralError when the cluster cannot be read.
        """
        self._logs.open()
        try:
            await self._records.open()
            await self._stage_runtime()
            await self._find_services()
            for attempt, container in (await self._records.all()).items():
                found = Attempt(attempt, Phase.ASSIGNED, container, since=self._now())
                self._table.attempts[attempt] = found
                if container == BURIED:
                    self._end(found, 128 + signals.SIGTERM, "it was stopped before it started")
            await self._look()
        except BaseException:
            await self.close()
            raise
        self._keep(self._look_again())

    async def close(self) -> None:
        """Release all resources without ending a task."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._closed = True
        for slot in self._table.slots.values():
            slot.wake.set()
        await self._yarn.close()
        await self._files.close()

    def attempts(self) -> frozenset[AttemptId]:
        """Return every attempt that has a record, or an end that was not forgotten."""
        return frozenset(name for name, each in self._table.attempts.items() if each.phase is not Phase.PENDING)

    async def inventory(self) -> Inventory:
        """Return all nodes as last seen. Raises Unavailable when the ResourceManager has never answered."""
        if self._inventory is None:
            raise Unavailable("hadoop-unreachable", "The ResourceManager has not answered yet.")
        return self._inventory

    async def start(self, launch: TaskLaunch) -> None:
        """Give the attempt to a slot, unless one has it.

        Raises Unavailable until one has it: repeat the call; InvalidInput for a task that YARN cannot run.
        """
        attempt = self._table.attempts.get(launch.attempt)
        if attempt is None:
            shape = self._shape(launch)
            attempt = Attempt(launch.attempt, Phase.PENDING, launch=launch, shape=shape, since=self._now())
            self._table.attempts[launch.attempt] = attempt
            self._logs.prepare(launch.attempt, split=_splits(launch))
        elif attempt.phase is not Phase.PENDING:
            return
        self._ring(parse_attempt_id(launch.attempt).job)
        try:
            async with asyncio.timeout(_ASSIGN_SECONDS):
                await attempt.assigned.wait()
        except TimeoutError:
            node = launch.node.partition("/")[2]
            message = f"{launch.attempt} waits for YARN to give a container on {node}."
            raise Unavailable("container-awaited", message) from None

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        """End the attempt: send `signal`, then KILL after the grace. One never started ends at once, for good."""
        number = _signal_number(signal)
        found = self._table.attempts.get(attempt)
        if found is None or found.phase is Phase.PENDING:
            found = found or Attempt(attempt, Phase.PENDING, since=self._now())
            self._table.attempts[attempt] = found
            found.phase, found.container = Phase.ASSIGNED, BURIED
            await self._records.write(attempt, BURIED)
            self._end(found, 128 + number, "it was stopped before it started")
            found.assigned.set()
            return
        if found.exited is None and found.stop is None:
            found.stop = (number, grace_seconds)
            if slot := self._table.slots.get(found.container):
                slot.wake.set()

    async def forget(self, attempts: Sequence[AttemptId]) -> None:
        """Drop the records of these attempts. Raises Conflict when one of them still runs."""
        for attempt in attempts:
            found = self._table.attempts.get(attempt)
            if found is None:
                continue
            if found.exited is None:
                raise Conflict("still-running", f"{attempt} still runs; stop it before it can be forgotten.")
            await self._records.remove(attempt, found.container)
            del self._table.attempts[attempt]
            if slot := self._table.slots.get(found.container):
                slot.attempt, slot.idle_since = None, self._now()
                slot.wake.set()
            self._ring(parse_attempt_id(attempt).job)

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """Yield events from now on. One reader at a time. Raises CorralError when a part of the engine has failed."""
        while True:
            event = await self._events.get()
            if isinstance(event, CorralError):
                raise event
            yield event

    async def exec(self, attempt: AttemptId, argv: Sequence[str], *, tty: bool) -> ExecSession:
        """Run a command beside the task. Raises NotFound when the attempt is not running here."""
        return self._open_session(attempt, {"argv": list(argv), "tty": tty})

    async def connect(self, attempt: AttemptId, port: int) -> ExecSession:
        """Open a TCP connection to one of the task's ports. Raises NotFound when it has no such port."""
        found = self._table.attempts.get(attempt)
        given = found.started.ports.values() if found is not None and found.started is not None else ()
        if given and not any(port in numbers for numbers in given):
            raise NotFound("no-such-port", f"{attempt} was not given port {port}.")
        return self._open_session(attempt, {"port": port})

    # ---- the calls of slots

    async def hello(self, token: str, identity: SlotHello) -> str:
        """Admit a slot; returns its own token. Raises Unauthenticated, NotFound."""
        service = self._table.services.get(identity.service)
        if not hmac.compare_digest(token, self._service_token(identity.service)):
            raise Unauthenticated("slot-refused", "The service's token is wrong.")
        component = identity.instance.rpartition("-")[0]
        if service is None or component not in service.components:
            raise NotFound("no-service", "There is no such service of this server.")
        slot = self._table.slots.get(identity.container)
        if slot is None:
            slot = Slot(identity.service, component, identity.instance, identity.container, identity.host)
            slot.idle_since = self._now()
            for gone in self._table.add_slot(slot):
                self._lose(gone)
        slot.seen = self._now()
        self._ring(service.job)
        return self._slot_token(identity.container)

    async def sync(self, token: str, state: SlotState) -> Any:
        """Fold a slot's state; returns its orders, at most `state.wait` seconds later. Raises Unauthenticated."""
        slot = self._slot(token)
        if self._closed:
            raise Unavailable("engine-closed", "This server is ending.")
        slot.seen = self._now()
        slot.reported = state.attempts
        for name, told in state.attempts.items():
            self._fold(slot, AttemptId(name), told)
        deadline = self._now() + min(state.wait, _MOST_WAIT)
        orders = self._orders(slot)
        while not orders and self._now() < deadline and self._serves(slot):
            slot.wake.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await slot.wake.wait()
            except TimeoutError:
                break
            orders = self._orders(slot)
        slot.seen = self._now()
        return orders

    def _serves(self, slot: Slot) -> bool:
        """Whether orders may still come for a slot."""
        return not self._closed and slot.container in self._table.slots

    async def append_log(self, token: str, attempt: AttemptId, stream: str, offset: int, data: bytes) -> int:
        """Store a part of a log; returns the offset of the part wanted next. Raises Unauthenticated, NotFound."""
        slot = self._slot(token)
        found = self._table.attempts.get(attempt)
        if found is None or found.container != slot.container or stream not in ("all", "stdout", "stderr"):
            raise NotFound("no-attempt", "This slot has no such attempt.")
        if len(data) > _MOST_LOG_PART:
            raise InvalidInput("log-part-too-large", f"A part of a log has at most {_MOST_LOG_PART} bytes.")
        self._logs.prepare(attempt)
        return await asyncio.to_thread(_append, self._logs.path(attempt, stream), offset, data)

    def session_of(self, token: str, session: str) -> Any:
        """The session of a slot, for its two streams. Raises Unauthenticated, NotFound."""
        slot = self._slot(token)
        return self._sessions.get(session, slot.container)

    # ---- what follows from them

    def _fold(self, slot: Slot, name: AttemptId, told: Any) -> None:
        attempt = self._table.attempts.get(name)
        if attempt is None or attempt.container != slot.container or attempt.exited is not None:
            return
        if told["state"] in ("running", "ended") and attempt.started is None and told.get("pid"):
            ports = {key: tuple(numbers) for key, numbers in told.get("ports", {}).items()}
            attempt.started = Started(name, float(told["at"]), slot.host, ports, f"{slot.container}:{told['pid']}")
            attempt.phase = Phase.STARTED
            self._open_log(attempt)
            self._events.put_nowait(attempt.started)
        if told["state"] == "ended":
            self._end(attempt, int(told["code"]), str(told.get("reason", "")), int(told.get("signal", 0)))

    def _orders(self, slot: Slot) -> dict[str, Any]:
        """What the slot is to do now; empty for nothing."""
        orders: dict[str, Any] = {}
        forget = [name for name in slot.reported if AttemptId(name) not in self._table.attempts]
        if forget:
            orders["forget"] = forget
        attempt = self._table.attempts.get(slot.attempt) if slot.attempt is not None else None
        if attempt is not None and attempt.exited is None:
            told = slot.reported.get(attempt.name)
            if told is None and attempt.launch is not None:
                orders["start"] = [order_of(attempt.launch, self._settings)]
            elif told is None:
                self._end(attempt, SLOT_LOST, "the server that started it ended before its slot had begun it")
            if attempt.stop is not None and not (told or {}).get("stopping"):
                orders["stop"] = [{"attempt": attempt.name, "signal": attempt.stop[0], "grace": attempt.stop[1]}]
        if slot.sessions:
            orders["sessions"], slot.sessions = slot.sessions, []
        if slot.releasing:
            orders["release"] = True
        return orders

    def _open_log(self, attempt: Attempt) -> None:
        """Create the log, so that it is there, and empty, before the task prints."""
        split = attempt.launch is not None and _splits(attempt.launch)
        for path in self._logs.prepare(attempt.name, split=split):
            with open(path, "ab"):
                pass

    def _end(self, attempt: Attempt, code: int, reason: str, number: int = 0) -> None:
        """Report an attempt's end, once; its log is complete from now on."""
        if attempt.exited is not None:
            return
        self._logs.prepare(attempt.name)
        size = self._logs.finish(attempt.name)
        attempt.phase = Phase.ENDED
        attempt.exited = Exited(attempt.name, self._wall(), code, number, reason, size)
        self._events.put_nowait(attempt.exited)

    def _lose(self, slot: Slot) -> None:
        """End the attempt of a slot whose container is gone."""
        self._table.slots.pop(slot.container, None)
        self._missing.pop(slot.container, None)
        slot.wake.set()
        self._sessions.end(slot.container)
        for attempt in self._table.attempts.values():
            if attempt.container == slot.container and attempt.exited is None:
                self._end(attempt, SLOT_LOST, "its YARN container is gone")

    # ---- jobs: what YARN is asked for

    def _ring(self, job: JobId) -> None:
        """Have the job's loop look again."""
        if job not in self._jobs:
            self._jobs[job] = asyncio.Event()
            self._spawn(self._tend(job, self._jobs[job]))
        self._jobs[job].set()

    async def _tend(self, job: JobId, bell: asyncio.Event) -> None:
        """Give a job's pending attempts to slots, and ask YARN for the containers that they need."""
        while True:
            bell.clear()
            try:
                await self._assign(job)
                await self._ask_for_containers(job)
            except CorralError as error:
                _log.warning("job %s: %s", job, error.message)
            self._give_up_waiting(job)
            if not self._table.services_of(job) and not self._table.pending(job):
                self._jobs.pop(job, None)
                return
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await bell.wait()
            except TimeoutError:
                continue

    async def _assign(self, job: JobId) -> None:
        for attempt in self._table.pending(job):
            slot = self._table.free_slot(attempt.shape, job) if attempt.shape is not None else None
            if slot is None:
                continue
            slot.attempt = attempt.name
            try:
                await self._records.write(attempt.name, slot.container)
            except CorralError:
                slot.attempt = None
                raise
            if attempt.phase is not Phase.PENDING:  # stopped meanwhile
                slot.attempt = None
                await self._records.remove(attempt.name, slot.container)
                continue
            attempt.phase, attempt.container = Phase.ASSIGNED, slot.container
            attempt.assigned.set()
            slot.wake.set()

    async def _ask_for_containers(self, job: JobId) -> None:
        pending: dict[SlotShape, int] = {}
        for attempt in self._table.pending(job):
            if attempt.shape is not None:
                pending[attempt.shape] = pending.get(attempt.shape, 0) + 1
        for service in self._table.services_of(job):
            for name, shape in service.components.items():
                need = self._table.needed(service, name, pending.pop(shape, 0))
                if need > service.wanted[name]:
                    await self._flex(service, name, need)
            await self._release_idle(service)
        if pending:
            await self._new_service(job, pending)

    async def _flex(self, service: Service, component: str, count: int) -> None:
        path = f"/app/v1/services/{service.name}/components/{component}"
        await self._yarn.ask("PUT", path, body={"name": component, "number_of_containers": count})
        service.wanted[component] = count

    async def _release_idle(self, service: Service) -> None:
        """End a service of which no slot has had an attempt for a while, or give single idle slots back."""
        now = self._now()
        slots = [each for each in self._table.slots.values() if each.service == service.name]
        idle = [s for s in slots if s.attempt is None and now - s.idle_since >= self._settings.idle_seconds]
        waiting = any(each.shape in service.components.values() for each in self._table.pending(service.job))
        if waiting or not idle:
            return
        if len(idle) == len(slots) == sum(service.wanted.values()):
            await self._delete(service)
            return
        for slot in idle:
            path = f"/app/v1/services/{service.name}"
            body = {"components": [{"name": slot.component, "decommissioned_instances": [slot.instance]}]}
            await self._yarn.ask("PUT", path, body=body)
            service.wanted[slot.component] -= 1
            slot.releasing = True
            slot.wake.set()

    async def _delete(self, service: Service) -> None:
        try:
            await self._yarn.ask("DELETE", f"/app/v1/services/{service.name}")
        except NotFound:
            pass
        del self._table.services[service.name]
        for slot in [each for each in self._table.slots.values() if each.service == service.name]:
            self._lose(slot)
        folder = f"/webhdfs/v1{quote(self._home(service.name))}"
        await self._files.ask("DELETE", folder, op="DELETE", recursive="true")

    async def _new_service(self, job: JobId, pending: dict[SlotShape, int]) -> None:
        numbers = [int(each.name.rpartition("-")[2]) for each in self._table.services_of(job)]
        # a random part: a name whose service was just deleted is refused for a moment
        name = service_name(self._settings, job, max(numbers, default=0) + 1)
        components = {component_name(shape, n): (shape, count) for n, (shape, count) in enumerate(pending.items())}
        credentials = await self._write_credentials(name)
        body = service_of(self._settings, name, components, {**self._programs, CREDENTIALS: credentials})
        try:
            await self._yarn.ask("POST", "/app/v1/services", body=body)
        except Conflict:
            _log.info("service %s is there already", name)
        shapes = {key: shape for key, (shape, _) in components.items()}
        self._table.services[name] = Service(name, job, shapes, {key: count for key, (_, count) in components.items()})

    def _give_up_waiting(self, job: JobId) -> None:
        """End attempts for which YARN gave no container in time; what it gave for them is given back."""
        for attempt in self._table.pending(job):
            if self._now() - attempt.since > self._settings.start_seconds:
                attempt.container = BURIED
                self._end(attempt, START_TIMEOUT, f"YARN gave no container within {self._settings.start_seconds:.0f} s")
                attempt.assigned.set()

    # ---- what is read from YARN

    async def _find_services(self) -> None:
        """Read this server's services from YARN."""
        prefix = service_prefix(self._settings)
        states = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
        answer = await self._yarn.ask("GET", "/ws/v1/cluster/apps", states=states, applicationTypes="yarn-service")
        for app in (answer.get("apps") or {}).get("app", []):
            name = str(app["name"])
            if not name.startswith(prefix):
                continue
            try:
                told = await self._yarn.ask("GET", f"/app/v1/services/{name}")
            except NotFound:
                continue
            self._table.services[name] = _service_told(name, told, self._settings)

    async def _look_again(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self._look()
            except Unavailable as error:
                _log.warning("%s", error.message)

    async def _look(self) -> None:
        """Read the nodes, and look for containers of silent slots and of attempts whose slot never came."""
        nodes = nodes_of(await self._yarn.ask("GET", "/ws/v1/cluster/nodes"))
        ours: dict[str, dict[str, int]] = {}
        for node, shape, count in self._table.used_by_node():
            used = ours.setdefault(node, {})
            for key, value in _amounts(shape, self._settings).items():
                used[key] = used.get(key, 0) + value * count
        inventory = inventory_of(nodes, self._settings, ours)
        if inventory != self._inventory:
            changed, self._inventory = self._inventory is not None, inventory
            if changed:
                self._events.put_nowait(InventoryChanged(self.name))
        now = self._now()
        silent = {each.container for each in self._table.slots.values() if now - each.seen > _SILENT_SECONDS}
        absent = {
            each.container
            for each in self._table.attempts.values()
            if each.exited is None and each.container and each.container not in self._table.slots
        }
        if silent | absent:
            await self._look_for(silent | absent)

    async def _look_for(self, containers: set[str]) -> None:
        """Lose slots whose containers YARN has not: twice in a row, because a list may be a moment late."""
        there: set[str] = set()
        for service in list(self._table.services.values()):
            try:
                told = await self._yarn.ask("GET", f"/app/v1/services/{service.name}")
            except NotFound:
                continue
            for component in told.get("components", []):
                there.update(str(each["id"]) for each in component.get("containers", []))
        for container in containers:
            self._missing[container] = 0 if container in there else self._missing.get(container, 0) + 1
            if self._missing[container] < 2:
                continue
            slot = self._table.slots.get(container) or Slot("", "", "", container, "")
            self._lose(slot)

    # ---- files in HDFS

    async def _stage_runtime(self) -> None:
        """Put the programs of slots into HDFS under their hashes."""
        with tempfile.TemporaryDirectory() as folder:
            runtime = await asyncio.to_thread(
                lambda: build_runtime(Path(folder) / "runtime.pyz", runtime_modules()).read_bytes()
            )
        for name, content in ((RUNTIME, runtime), (WRAPPER, SCRIPT.encode())):
            digest = hashlib.sha256(content).hexdigest()[:16]
            path = f"{self._settings.folder}/{self._settings.server}/{digest}-{name}"
            try:
                await self._files.ask("GET", f"/webhdfs/v1{quote(path)}", op="GETFILESTATUS")
            except NotFound:
                await self._files.put_file(f"/webhdfs/v1{quote(path)}", content, permission="644", overwrite="true")
            self._programs[name] = path

    async def _write_credentials(self, service: str) -> str:
        content = {
            "url": self._settings.url,
            "certificate": self._settings.certificate,
            "service": service,
            "token": self._service_token(service),
            "stage_command": list(self._settings.stage_command),
        }
        path = f"{self._home(service)}/slot.json"
        data = msgspec.json.encode(content)
        await self._files.put_file(f"/webhdfs/v1{quote(path)}", data, permission="600", overwrite="true")
        return path

    def _home(self, service: str) -> str:
        return f"{self._settings.folder}/{self._settings.server}/services/{service}"

    # ---- small things

    def _shape(self, launch: TaskLaunch) -> SlotShape:
        """The shape of the container that a task needs. Raises InvalidInput for what YARN cannot run."""
        if launch.image:
            raise InvalidInput("no-images", "The YARN engine runs no container images yet; leave the image out.")
        node = launch.node.removeprefix(f"{self.name}/")
        role = parse_attempt_id(launch.attempt).role
        more = tuple(sorted(launch.resources.items()))
        return SlotShape(role, node, launch.cpu_millis, launch.memory_bytes, len(launch.devices), more)

    def _open_session(self, attempt: AttemptId, order: dict[str, Any]) -> ExecSession:
        found = self._table.attempts.get(attempt)
        slot = self._table.slots.get(found.container) if found is not None else None
        if found is None or slot is None or found.started is None or found.exited is not None:
            raise NotFound("not-running", f"{attempt} is not running on this cluster.")
        session = self._sessions.open(secrets.token_hex(16), slot.container)
        slot.sessions.append({"session": session.id, "attempt": attempt, **order})
        slot.wake.set()
        return session

    def _slot(self, token: str) -> Slot:
        container = token.partition(".")[0]
        slot = self._table.slots.get(container)
        if slot is None or not hmac.compare_digest(token, self._slot_token(container)):
            raise Unauthenticated("slot-refused", "This slot's token is not valid any more.")
        return slot

    def _service_token(self, service: str) -> str:
        return self._derived(f"service {service}")

    def _slot_token(self, container: str) -> str:
        return f"{container}.{self._derived(f'slot {container}')}"

    def _derived(self, words: str) -> str:
        return hmac.new(self._key, f"yarn {self._settings.server} {words}".encode(), hashlib.sha256).hexdigest()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._failed)
        return task

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        self._spawn(work)

    def _failed(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            name = getattr(task.get_coro(), "__qualname__", "a part of it")
            _log.error("%s failed", name, exc_info=error)
            message = f"The engine {self.name} cannot go on: {name} failed with {type(error).__name__}, see the log."
            self._events.put_nowait(CorralError("engine-failed", message))

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class SlotHello(msgspec.Struct, frozen=True):
    """A slot's first call."""

    service: str
    instance: str
    container: str
    host: str


class SlotState(msgspec.Struct, frozen=True):
    """A slot's call for orders."""

    attempts: dict[str, dict[str, Any]]
    wait: float = 0.0


def _append(path: str, offset: int, data: bytes) -> int:
    """Append `data` if the file ends at `offset`; the size of the file then."""
    with open(path, "ab") as file:
        size = file.tell()
        return size + file.write(data) if size == offset else size


def _amounts(shape: SlotShape, settings: YarnSettings) -> dict[str, int]:
    memory = max(64, -(-shape.memory_bytes // 2**20))
    amounts = {"memory-mb": memory, "vcores": max(1, -(-shape.cpu_millis // 1000))}
    return amounts | ({settings.device_resource: shape.devices} if shape.devices else {}) | dict(shape.resources)


def _splits(launch: TaskLaunch) -> bool:
    return launch.env.get("CORRAL_SPLIT_LOGS") == "split"


def _signal_number(name: str) -> int:
    try:
        return int(signals.Signals[name if name.startswith("SIG") else f"SIG{name}"])
    except KeyError:
        raise InvalidInput("unknown-signal", f"There is no signal {name}; TERM, INT and USR1 are usual.") from None


def _service_told(name: str, told: Any, settings: YarnSettings) -> Service:
    """A service as YARN describes it."""
    shapes: dict[str, SlotShape] = {}
    wanted: dict[str, int] = {}
    for each in told.get("components", []):
        resource = each["resource"]
        more = {key: int(value["value"]) for key, value in (resource.get("additional") or {}).items()}
        devices = more.pop(settings.device_resource, 0)
        constraints = (each.get("placement_policy") or {}).get("constraints") or []
        attributes = constraints[0]["node_attributes"] if constraints else {}
        node = next(iter(attributes.get(settings.attribute, [""])), "")
        key = str(each["name"])
        role = key.rpartition("-n")[0]
        shapes[key] = SlotShape(
            role,
            node,
            1000 * int(resource["cpus"]),
            int(resource["memory"]) * 2**20,
            devices,
            tuple(sorted(more.items())),
        )
        wanted[key] = int(each["number_of_containers"])
    job = JobId(name.rpartition("-")[0].rpartition("-")[2])
    return Service(name, job, shapes, wanted)
