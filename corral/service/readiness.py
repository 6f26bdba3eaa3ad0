"""Check whether the server can answer calls: its store, its disk and its scheduler."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from corral.kernel.errors import CorralError
from corral.model.views import Readiness
from corral.service.context import Context
from corral.service.control_client import NoControl
from corral.service.health import shortages

_LOOK_SECONDS: Final = 1.0
"""Seconds for which a readiness answer is reused, because it is asked for without a token."""
_PATIENCE: Final = 2.0
"""Seconds that disk and control have to answer; a kubelet's probe waits five."""


class ReadinessCheck:
    """Whether the server can answer calls, and what does not work."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._looking: asyncio.Task[Readiness] | None = None
        self._look_again = 0.0
        self._disk: asyncio.Future[list[str]] | None = None

    async def check(self) -> Readiness:
        """Whether calls can be answered now, and what does not work; checked at most once a second."""
        now = time.monotonic()
        if self._looking is None or (self._looking.done() and now >= self._look_again):
            self._look_again = now + _LOOK_SECONDS
            self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(self._looking)

    async def _look(self) -> Readiness:
        stored, lacking, control = await asyncio.gather(self._ask_store(), self.lacking(), self._ask_control())
        if stored:
            return Readiness(False, (stored, *lacking, *control))
        trouble = self._store.trouble()
        reasons = tuple(dict.fromkeys((*lacking, *([trouble] if trouble else []), *control)))
        return Readiness(True, reasons, degraded=bool(reasons))

    async def _ask_store(self) -> str:
        try:
            await self._store.ping()
        except CorralError as error:
            return error.message
        return ""

    async def lacking(self) -> list[str]:
        """What front lacks of disk and descriptors, one sentence each."""
        if self._context.folder is None:
            return []
        if self._disk is None or self._disk.done():  # a disk that hangs takes one thread, not one for each question
            self._disk = asyncio.ensure_future(asyncio.to_thread(shortages, self._context.folder, "front"))
        try:
            async with asyncio.timeout(_PATIENCE):
                return await asyncio.shield(self._disk)
        except TimeoutError:
            return [f"The disk that holds Corral's data has not answered for {_PATIENCE:.0f} s; look at it."]

    async def _ask_control(self) -> list[str]:
        """The problems that control reports, or the fact that it does not answer."""
        if isinstance(self._context.control, NoControl):
            return []
        try:
            async with asyncio.timeout(_PATIENCE):
                said = await self._context.control.request("/ping")
        except TimeoutError:
            return [f"The scheduler has not answered for {_PATIENCE:.0f} s: jobs are taken, and none begins or ends."]
        except CorralError as error:
            return [error.message]
        starting = [] if said.get("ready") else ["The scheduler is still starting."]
        return [*starting, *map(str, said.get("reasons", ()))]
