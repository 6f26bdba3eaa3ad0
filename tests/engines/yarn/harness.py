"""Drive the YARN engine on a real YARN: the engine, and the HTTP server that its slots call."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
import urllib.error
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn

from corral.engines.yarn.engine import YarnEngine
from corral.engines.yarn.settings import YarnSettings
from corral.engines.yarn.slot_api import SlotApi
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId, job_id
from corral.model.inventory import Device
from corral.model.launch import EngineEvent, Exited, Started, TaskLaunch
from corral.storage.log_files import LogStore
from tests.reserved import free_port
from tests.testbeds.hadoop.yarn import Yarn

PATIENCE = 150.0
_JOBS = itertools.count(1)


class Patient:
    """An engine whose starts are repeated while it answers Unavailable, as control repeats them."""

    def __init__(self, engine: YarnEngine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def start(self, launch: TaskLaunch) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await self._engine.start(launch)
                except Unavailable:
                    await asyncio.sleep(0.1)


class Opened:
    """An open engine, whose events are collected."""

    def __init__(self, engine: YarnEngine, logs: Path) -> None:
        self.engine: Any = Patient(engine)
        self.raw = engine
        self.seen: list[EngineEvent] = []
        self._logs = logs
        self._changed = asyncio.Condition()

    async def read(self) -> None:
        async for event in self.raw.watch():
            async with self._changed:
                self.seen.append(event)
                self._changed.notify_all()

    async def started(self, which: AttemptId) -> Started:
        return await self._event(Started, which)

    async def exited(self, which: AttemptId) -> Exited:
        return await self._event(Exited, which)

    def log(self, which: AttemptId) -> str:
        job, _, rest = which.partition(".")
        return (self._logs / job / f"{rest}.all").read_text()

    async def _event(self, kind: type, which: AttemptId) -> Any:
        def match() -> EngineEvent | None:
            return next((e for e in self.seen if isinstance(e, kind) and e.attempt == which), None)

        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(match), PATIENCE)
        return match()


class YarnPlace:
    """What outlives engine objects: a port for slots, a folder of logs, and a server's name on a YARN."""

    def __init__(self, yarn: Yarn, folder: Path, **settings: Any) -> None:
        self.yarn, self.folder = yarn, folder
        self.port = free_port()
        number = next(_JOBS)
        self.job = job_id(int(time.time() * 1000), number)
        self._tasks = itertools.count()
        self.settings = YarnSettings(
            server=f"s{number}{self.port}",
            resource_managers=(yarn.url,),
            file_systems=(yarn.hdfs.web.replace("webhdfs", "http"),),
            user=yarn.user,
            url=f"http://127.0.0.1:{self.port}",
            **settings,
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Any]:
        """Open an engine; leaving it ends no task, like a killed server."""
        engine = YarnEngine(self.settings, secret=b"k" * 32, logs=LogStore(self.folder / "logs"))
        await engine.open()
        config = uvicorn.Config(SlotApi(engine), host="127.0.0.1", port=self.port, log_config=None, lifespan="off")
        server = uvicorn.Server(config)
        server.capture_signals = _no_signals  # type: ignore[method-assign]
        serving = asyncio.create_task(server.serve())
        opened = Opened(engine, self.folder / "logs")
        reading = asyncio.create_task(opened.read())
        try:
            yield opened
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await engine.close()
            server.should_exit = True
            await asyncio.gather(serving, return_exceptions=True)

    def launch(self, *command: str, **fields: Any) -> TaskLaunch:
        """The launch of a new attempt on nm1."""
        given = {
            "attempt": AttemptId(f"{self.job}.0.worker.{next(self._tasks)}.0"),
            "user": "ada",
            "node": "yarn/nm1",
            "env": {},
            "cpu_millis": 1000,
            "memory_bytes": 128 * 2**20,
        }
        return TaskLaunch(command=command, **{**given, **fields})

    def devices(self, count: int) -> tuple[Device, ...]:
        """The first devices of a node."""
        return tuple(Device(index, f"yarn/nm1:{index}", "gpu") for index in range(count))

    def clear(self) -> None:
        """Delete the services that a test left, and wait until YARN counts their applications as ended."""
        deadline = time.monotonic() + PATIENCE
        while left := self._left():
            assert time.monotonic() < deadline, f"still there after {PATIENCE:.0f} s: {left}"
            for name, user in left.items():
                # refused with 400 or 404 for a service that is ending already
                with contextlib.suppress(urllib.error.HTTPError):
                    self.yarn.ask(f"/app/v1/services/{name}", method="DELETE", user=user)
            time.sleep(0.2)

    def _left(self) -> dict[str, str]:
        """The names of this server's applications that have not ended, with their users."""
        prefix = f"corral-{self.settings.server[:8]}-"
        return {app["name"]: app["user"] for app in self.yarn.live_apps() if app["name"].startswith(prefix)}


Places = Callable[..., YarnPlace]
"""Makes places by their settings; they are cleared after the test."""


class _no_signals:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...
