"""An engine without processes whose tasks end by the clock, to measure the scheduler's throughput.

`python -m bench.timed_engine` is the server's control with this engine in place of the local one. The store, the
scheduler, the launcher and the commits are the real ones. A task runs for `RUN_SECONDS` of its environment.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence

from corral.engines.base import ExecSession
from corral.kernel.errors import NotFound
from corral.kernel.ids import AttemptId
from corral.model.inventory import Inventory
from corral.model.launch import EngineEvent, Exited, InventoryChanged, Started, TaskLaunch

DURATION = "RUN_SECONDS"


class TimedEngine:
    """Tasks that end by the clock."""

    name = "local"

    def __init__(self) -> None:
        self._inventory = Inventory(self.name, ())
        self._events: asyncio.Queue[EngineEvent] = asyncio.Queue()
        self._running: dict[AttemptId, asyncio.TimerHandle | None] = {}

    def set_inventory(self, inventory: Inventory) -> None:
        """Set the machines."""
        self._inventory = inventory
        self._events.put_nowait(InventoryChanged(self.name))

    async def open(self) -> None:
        """Do nothing: no tasks survive a restart."""

    async def close(self) -> None:
        """Cancel the timers."""
        for timer in self._running.values():
            if timer is not None:
                timer.cancel()

    def attempts(self) -> frozenset[AttemptId]:
        """Every attempt that was not forgotten."""
        return frozenset(self._running)

    async def inventory(self) -> Inventory:
        """The machines."""
        return self._inventory

    async def start(self, launch: TaskLaunch) -> None:
        """Run for the time that the task's environment gives."""
        if launch.attempt in self._running:
            return
        seconds = float(launch.env[DURATION])
        self._events.put_nowait(Started(launch.attempt, time.time()))
        timer = asyncio.get_running_loop().call_later(seconds, self._end, launch.attempt, 0)
        self._running[launch.attempt] = timer

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        """End at once, like a task that exits on its signal."""
        timer = self._running.get(attempt)
        if attempt in self._running and timer is None:
            return
        if timer is not None:
            timer.cancel()
        self._end(attempt, 143)

    def _end(self, attempt: AttemptId, code: int) -> None:
        self._running[attempt] = None
        self._events.put_nowait(Exited(attempt, time.time(), code))

    async def forget(self, attempts: Sequence[AttemptId]) -> None:
        """Drop these attempts; their ends are stored."""
        for attempt in attempts:
            self._running.pop(attempt, None)

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """Yield the engine's events."""
        while True:
            yield await self._events.get()

    async def exec(self, attempt: AttemptId, argv: Sequence[str], *, tty: bool) -> ExecSession:
        """Refuse: there is no process to run a command beside."""
        raise NotFound("no-process", "These tasks have no processes.")


def main() -> int:
    """Run control, as `corral serve control` does, on this engine."""
    from corral import app
    from corral.engines.local import engine
    from corral.settings import Settings

    engine.LocalEngine = lambda *nodes, **settings: TimedEngine()  # type: ignore[assignment,misc]
    return app.serve_control(Settings())


if __name__ == "__main__":
    sys.exit(main())
