"""The parts of the server, for administrators: the state and version of front, store, scheduler, engines and agents."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

import corral
from corral.kernel.errors import CorralError
from corral.model.records import Page
from corral.model.server_parts import AWAY, DEGRADED, OK, ServerPart
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.readiness import ReadinessCheck

PARTS: Final = "/parts"
"""Control's address that lists the parts that it sees."""
_PATIENCE: Final = 2.0
"""Seconds that the scheduler has to answer."""


class ServerParts:
    """What the server consists of, and what of it works."""

    def __init__(self, context: Context, readiness: ReadinessCheck) -> None:
        self._context = context
        self._store = context.store
        self._readiness = readiness

    async def page(self, actor: Actor) -> Page[ServerPart]:
        """Every part of the server, with its state and version; a part that does not answer is `away`."""
        await self._context.check(actor, "cluster.inspect", Resource("cluster"))
        front, store, others = await asyncio.gather(self._front(), self._ask_store(), self._ask_control())
        return Page([front, store, *others], None)

    async def _front(self) -> ServerPart:
        lacking = tuple(await self._readiness.lacking())
        return ServerPart("front", "front", DEGRADED if lacking else OK, corral.__version__, lacking)

    async def _ask_store(self) -> ServerPart:
        try:
            version = await self._store.database_version()
        except CorralError as error:
            return ServerPart("store", self._store.database_name, AWAY, reasons=(error.message,))
        trouble = self._store.trouble()
        return ServerPart(
            "store", self._store.database_name, DEGRADED if trouble else OK, version, (trouble,) if trouble else ()
        )

    async def _ask_control(self) -> list[ServerPart]:
        try:
            async with asyncio.timeout(_PATIENCE):
                return msgspec.convert(await self._context.control.request(PARTS), list[ServerPart])
        except TimeoutError:
            said = f"The scheduler has not answered for {_PATIENCE:.0f} s: jobs are taken, and none begins or ends."
        except CorralError as error:
            said = error.message
        return [ServerPart("scheduler", "scheduler", AWAY, reasons=(said,))]
