"""A real store and a real control loop around an engine whose tasks end when the test says so."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from corral.control.configuration import Presenter
from corral.control.journal_keeper import JournalKeeper
from corral.control.lease import Leadership
from corral.control.loop import Control
from corral.control.task_launch import LaunchContext
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId, JobId, job_id
from corral.launcher import LaunchPolicy
from corral.model.inventory import Device, Inventory, Node
from corral.model.launch import EngineEvent, Exited, InventoryChanged, Started, TaskLaunch
from corral.model.records import JobSummary, rfc3339
from corral.model.store_writes import JobRecord, NewJob
from corral.scheduler import find_policy
from corral.spec.job_reader import load_job
from corral.store import Store, open_store
from corral.store.call_deadlines import TOOL_SECONDS
from corral.systemclock import SystemClock
from tests.databases import sqlite_store

_HANG: Final = 120.0
"""Seconds after which a wait has failed; not a bound on speed."""


async def no_secrets(job: object) -> dict[str, str]:
    """A stand-in without secrets."""
    return {}


async def anybody(user: str) -> None:
    """Every job runs under its user's own name."""


class PaperEngine:
    """An engine without machines that records starts; tests end its tasks. Idempotent by attempt like a real one."""

    def __init__(self, nodes: int = 2, devices: int = 4, name: str = "local") -> None:
        self.name = name
        self._nodes = tuple(
            Node(
                name=f"{name}/node{number}",
                cells=(("rack", f"rack{number % 2}"),),
                devices=tuple(Device(index, f"node{number}:{index}", described=True) for index in range(devices)),
                cpu_millis=64_000,
                memory_bytes=2**36,
            )
            for number in range(nodes)
        )
        self.started_at = 1.0
        """The start time that all tasks report."""
        self.running: dict[AttemptId, TaskLaunch] = {}
        self.ended: dict[AttemptId, Exited] = {}
        self.started: list[AttemptId] = []
        self.stopped: list[AttemptId] = []
        self.most_instances: dict[str, int] = {}
        self.unreachable = ""
        """Why it cannot be opened; "" if it can."""
        self.fault: Callable[[str], None] = lambda call: None
        self.codes: dict[str, int] = {}
        """Exit codes by job name; tasks of these jobs end at once, those of others run on."""
        self._events: asyncio.Queue[EngineEvent] = asyncio.Queue()

    async def open(self) -> None:
        if self.unreachable:
            raise Unavailable("engine-silent", self.unreachable)
        self._events = asyncio.Queue()
        for attempt in self.running:
            self._events.put_nowait(Started(attempt, self.started_at))
        for event in self.ended.values():
            self._events.put_nowait(event)

    async def close(self) -> None:
        pass

    def attempts(self) -> frozenset[AttemptId]:
        return frozenset(self.running) | frozenset(self.ended)

    async def inventory(self) -> Inventory:
        return Inventory(self.name, self._nodes)

    async def start(self, launch: TaskLaunch) -> None:
        self.fault("start")
        attempt = launch.attempt
        if attempt in self.running or attempt in self.ended:
            return
        task = attempt.rpartition(".")[0]
        alike = sum(1 for other in self.running if other.rpartition(".")[0] == task)
        self.most_instances[task] = max(self.most_instances.get(task, 0), alike + 1)
        self.started.append(attempt)
        self.running[attempt] = launch
        self._events.put_nowait(Started(attempt, self.started_at))
        code = launch.env.get("END_WITH")
        if code is not None:
            self.end(attempt, int(code))

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        self.fault("stop")
        self.stopped.append(attempt)
        if attempt in self.running:
            self.end(attempt, 143)
        elif attempt not in self.ended:
            self._over(Exited(attempt, 2.0, 143))

    async def forget(self, attempts: Sequence[AttemptId]) -> None:
        self.fault("forget")
        for attempt in attempts:
            self.ended.pop(attempt, None)

    async def watch(self) -> AsyncIterator[EngineEvent]:
        while True:
            yield await self._events.get()

    async def exec(self, attempt: AttemptId, argv: Sequence[str], *, tty: bool) -> Any:
        raise AssertionError("nothing here runs commands")

    def drop_node(self, name: str) -> None:
        """Remove a node from the inventory; its tasks run on."""
        self._nodes = tuple(node for node in self._nodes if node.name != name)
        self._events.put_nowait(InventoryChanged(self.name))

    def end(self, attempt: AttemptId, code: int) -> None:
        """End a running task with `code`."""
        del self.running[attempt]
        self._over(Exited(attempt, 2.0, code))

    def _over(self, event: Exited) -> None:
        self.ended[event.attempt] = event
        self._events.put_nowait(event)


def new_job(text: str, at: float, number: int, user: str) -> NewJob:
    """A job as the service would store it at a time."""
    document, identity = load_job(text), job_id(int(at * 1000), number)
    summary = JobSummary(
        id=identity,
        name=document.name,
        user=user,
        queue=document.spec.queue,
        priority=document.priority,
        job_type=document.spec.job_type,
        state="waiting",
        created_at=rfc3339(at),
    )
    return NewJob(
        id=identity,
        user=user,
        name=document.name,
        queue=document.spec.queue,
        priority=document.priority,
        doc=document.to_json(),
        summary=summary,
        created_at=at,
    )


class House:
    """A store in a folder, and controls that can be started, abandoned as if killed, and started again."""

    def __init__(self, folder: Path, engine: PaperEngine) -> None:
        self.folder = folder
        self.engine = engine
        self.other_engines: tuple[PaperEngine, ...] = ()
        self.clock = SystemClock()
        self.not_ready_seconds = 60.0
        self.presenter: Presenter | None = None
        self.journal: Callable[[], JournalKeeper] | None = None
        """Makes what keeps the journal of each control; None: no journal."""
        self.launch_policy = LaunchPolicy(conflict_delay=(0.0, 0.0), retry_first=0.0)
        self._number = 0
        self._running: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the store as front does, but with a tool's timeout, because the test writes through it."""
        self.store = await self._store("front")
        self.store.limits.seconds = TOOL_SECONDS

    async def _store(self, role: str) -> Store:
        return await open_store(sqlite_store(self.folder), clock=self.clock, run_folder=self.folder / "run", role=role)

    async def begin(self, beside: Callable[[Control], None] = lambda control: None) -> Control:
        """Start a new control that leads; `beside` adds its companions before it runs."""
        self.control_store = await self._store("control")
        self.control = Control(
            self.control_store,
            {each.name: each for each in (self.engine, *self.other_engines)},
            Leadership(self.control_store),
            clock=self.clock,
            launch_policy=self.launch_policy,
            policy=find_policy(),
            presenter=self.presenter,
            not_ready_seconds=self.not_ready_seconds,
            journal=None if self.journal is None else self.journal(),
        )
        self.control.context = LaunchContext("", lambda job: "", no_secrets, self.control.node, anybody, str)
        beside(self.control)
        self._running = asyncio.create_task(self.control.run())
        ready = asyncio.create_task(self.control.ready.wait())
        done, _ = await asyncio.wait({self._running, ready}, timeout=_HANG, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        assert done, "control did not become ready"
        if self._running in done:
            await self._running
        return self.control

    async def abandon(self) -> None:
        """Drop control between two awaits, as a kill would: it writes and finishes nothing."""
        assert self._running is not None
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._running
        await self.control.dispatcher.close()
        await self.control_store.close()

    async def close(self) -> None:
        """Close in order."""
        if self._running is not None and not self._running.done():
            await self.abandon()
        await self.store.close()

    async def submit(self, text: str, *, user: str = "ada") -> JobId:
        """Store a job as the service does."""
        self._number += 1
        job = new_job(text, self.clock.now(), self._number, user)
        await self.store.submit(job)
        return job.id

    @staticmethod
    def patience() -> asyncio.Timeout:
        """The time limit of a wait; the test fails after it."""
        return asyncio.timeout(_HANG)

    async def until(self, job: JobId, *states: str) -> JobRecord:
        """Wait until a job is in one of these states."""
        return await self.when(job, lambda record: record.phase in states)

    async def explained(self, job: JobId) -> JobRecord:
        """Wait until the scheduler's reason for a waiting job is stored."""
        return await self.when(job, lambda record: record.summary.waiting is not None)

    async def when(self, job: JobId, holds: Callable[[JobRecord], bool]) -> JobRecord:
        """Wait until the stored job fulfils `holds`."""
        async with self.patience():
            while True:
                record = await self.store.find_job(job)
                assert record is not None
                if holds(record):
                    return record
                await self.store.wakeup.wait(0.05)


def short(
    name: str, *, replicas: int | dict[str, int] = 1, devices: int = 0, end_with: int | None = None, **more: Any
) -> str:
    """A job file in the short form."""
    role: dict[str, Any] = {
        "replicas": replicas,
        "resources": {"cpu": 1, "devices": devices},
        "command": ["true"],
    }
    if end_with is not None:
        role["env"] = {"END_WITH": str(end_with)}
    return json.dumps({"name": name, "framework": "shell", "roles": {"worker": role}, **more})
