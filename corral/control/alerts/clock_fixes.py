"""Have the agents of nodes set the clocks of GPUs that alerts name, beside the loop that evaluates the rules."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

import structlog

from corral.devices.nvidia_clocks import MOST_SECONDS
from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError
from corral.model.accounts import AuditWrite
from corral.model.store_writes import ServerEvent
from corral.monitor.agent.clock_fixes import EVERY_SECONDS, PATH

log = structlog.get_logger()

_MOST_AT_ONCE: Final = 8
_MOST_PENDING: Final = 256
"""GPUs whose clocks are to be set; of more, the alerts act again after the routes' `repeat`."""
_MOST_KNOWN: Final = 10_000
"""GPUs of which is remembered when they were asked for."""


class Agents(Protocol):
    """Asks the agent of a node for something."""

    async def post(self, node: str, path: str, seconds: float) -> str: ...  # noqa: D102


class Records(Protocol):
    """The part of the store that is written."""

    async def add_audit(self, line: AuditWrite) -> None: ...  # noqa: D102
    async def tell_of_server(self, told: list[ServerEvent]) -> None: ...  # noqa: D102


class ClockFixer:
    """Asks for each GPU once an hour at most, and for a few at once; what comes of it is an event of the server."""

    def __init__(self, agents: Agents, store: Records, clock: Clock) -> None:
        self._agents, self._store, self._clock = agents, store, clock
        self._asked_at: dict[tuple[str, int], float] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)

    async def fix(self, node: str, minor: int, line: AuditWrite, by: str) -> None:
        """Begin to set the clocks of a GPU, once the audit line is stored.

        Raises Unavailable like the store.
        """
        now, key = self._clock.now(), (node, minor)
        if now < self._asked_at.get(key, -EVERY_SECONDS) + EVERY_SECONDS:
            return
        if len(self._running) >= _MOST_PENDING:
            log.warning("the clocks of enough GPUs are to be set", node=node, gpu=minor, most=_MOST_PENDING)
            return
        await self._store.add_audit(line)
        self._asked_at.pop(key, None)
        if len(self._asked_at) >= _MOST_KNOWN:
            del self._asked_at[next(iter(self._asked_at))]
        self._asked_at[key] = now
        task = asyncio.create_task(self._fix(node, minor, by))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def settled(self) -> None:
        """Wait until nothing is being set any more."""
        await asyncio.gather(*self._running)

    async def _fix(self, node: str, minor: int, by: str) -> None:
        try:
            async with self._turns:
                said = await self._agents.post(node, f"{PATH}{minor}", MOST_SECONDS + 10.0)
            kind = "server.gpu-clocks-set"
        except CorralError as error:
            kind, said = "server.gpu-clocks-not-set", error.message
        try:
            event = ServerEvent(self._clock.now(), kind, f"GPU {minor} of {node}: {said}"[:500], by)
            await self._store.tell_of_server([event])
        except CorralError as error:
            log.warning("what came of setting a GPU's clocks could not be stored", node=node, error=error.message)
