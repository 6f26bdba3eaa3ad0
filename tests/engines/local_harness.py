"""Drive the local engine with real processes through its protocol, and leave none behind."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from corral.engines.local import cgroups, processes
from corral.engines.local.engine import LocalEngine
from corral.kernel.ids import AttemptId, job_id
from corral.model.inventory import Node
from corral.model.launch import EngineEvent, Exited, Started, TaskLaunch
from corral.storage.log_files import LogStore

NODE = "local/node1"
JOB = job_id(int(time.time() * 1000), os.getpid())
"""Unique to this run: other runs may share the machine, and engines find processes by the attempt's id."""


def attempt(task: int = 0, retry: int = 0) -> AttemptId:
    return AttemptId(f"{JOB}.0.worker.{task}.{retry}")


def launch(*command: str, task: int = 0, **fields: Any) -> TaskLaunch:
    fields = {"attempt": attempt(task), "user": "ada", "node": NODE, "env": {}, **fields}
    return TaskLaunch(command=command, **fields)


FIRST = attempt()


class Harness:
    """One engine over a folder; its events are collected as they arrive."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.logs = LogStore(folder / "logs")
        options.setdefault("nodes", [Node(NODE)])
        self.engine = LocalEngine(folder / "engine", logs=self.logs, **options)
        self.seen: list[EngineEvent] = []
        self._changed = asyncio.Condition()
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Harness:
        await self.engine.open()
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.abandon()
        end_everything(self.folder)
        parents = self.engine._cgroups.parents if self.engine._cgroups else ()
        await until(lambda: cgroups.remove(map(str, parents)))

    async def abandon(self) -> None:
        """Close without ending a task."""
        assert self._reader is not None
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self.engine.close()

    async def run(self, *command: str, **fields: Any) -> Exited:
        task = launch(*command, **fields)
        await self.engine.start(task)
        return await self.exited(task.attempt)

    async def exited(self, which: AttemptId) -> Exited:
        return await self.event(Exited, which)

    async def started(self, which: AttemptId) -> Started:
        return await self.event(Started, which)

    async def event(self, kind: type, which: AttemptId) -> Any:
        def match() -> EngineEvent | None:
            return next((e for e in self.seen if isinstance(e, kind) and e.attempt == which), None)

        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(match), 150)
        return match()

    def count(self, kind: type, which: AttemptId) -> int:
        return sum(isinstance(e, kind) and e.attempt == which for e in self.seen)

    def log(self, which: AttemptId = FIRST, stream: str = "all") -> str:
        job, _, rest = which.partition(".")
        return (self.folder / "logs" / job / f"{rest}.{stream}").read_text()

    async def line(self, text: str, which: AttemptId = FIRST) -> str:
        """Wait until the task has printed a line that begins with `text`; returns it."""
        return await until(lambda: next((x for x in self.log(which).splitlines() if x.startswith(text)), ""))

    def shim(self, which: AttemptId = FIRST) -> int:
        process = self.engine._live[which].process
        assert process is not None
        return process.pid

    async def _read(self) -> None:
        async for event in self.engine.watch():
            async with self._changed:
                self.seen.append(event)
                self._changed.notify_all()


async def until(condition: Callable[[], Any], seconds: float = 150) -> Any:
    """Poll until the condition is true; the limit only guards against a hang."""
    async with asyncio.timeout(seconds):
        while not (found := condition()):
            await asyncio.sleep(0.005)
    return found


def alive(pid: int) -> bool:
    found = processes.stat(pid)
    return found is not None and found.alive


def of_attempt(which: str) -> list[int]:
    return [pid for pid, marked in processes.marked() if marked == which]


def end_everything(folder: Path) -> None:
    """Kill processes that a failed test left of the attempts in `folder`."""
    names = set(os.listdir(folder / "engine" / "attempts"))
    for pid, marked in list(processes.marked()):
        if marked in names:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


async def collect(stream: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in stream])
