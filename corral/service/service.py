"""All operations of the API in one class, used by every version of the API and by control's bridge."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from corral.kernel.errors import CorralError
from corral.model.records import EventRecord, Page
from corral.model.views import Readiness
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.base import NoControl
from corral.service.configuration.queue_managers import Managing
from corral.service.health import shortages
from corral.service.jobs.editing import Editing
from corral.service.machines.nodes import Machines
from corral.service.machines.queue_views import Overview
from corral.service.openpai.accounts import OpenPaiAccounts
from corral.service.openpai.cluster_import import OpenPaiImporting
from corral.service.openpai.framework_launcher import OpenPaiLauncher
from corral.service.openpai.kubernetes_lists import OpenPaiClusterLists
from corral.service.openpai.logs import OpenPaiLogs
from corral.service.openpai.templates import OpenPaiTemplates
from corral.service.openpai.v1 import OpenPaiV1
from corral.service.openpai.virtual_clusters import OpenPaiClusters
from corral.service.task_access import TaskAccess

_LOOK_SECONDS: Final = 1.0
"""Seconds for which a readiness answer is reused, because it is asked for without a token."""
_PATIENCE: Final = 2.0
"""Seconds that disk and control have to answer; a kubelet's probe waits five."""


class Service(
    Editing,
    OpenPaiV1,
    OpenPaiLogs,
    OpenPaiLauncher,
    OpenPaiTemplates,
    OpenPaiClusterLists,
    OpenPaiClusters,
    OpenPaiImporting,
    Managing,
    Machines,
    Overview,
    TaskAccess,
    OpenPaiAccounts,
):
    """All operations of a caller."""

    _looking: asyncio.Task[Readiness] | None = None
    _look_again = 0.0
    _disk: asyncio.Future[list[str]] | None = None

    async def ready(self) -> Readiness:
        """Whether calls can be answered now, and what does not work; checked at most once a second."""
        now = time.monotonic()
        if self._looking is None or (self._looking.done() and now >= self._look_again):
            self._look_again = now + _LOOK_SECONDS
            self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(self._looking)

    async def server_events(self, actor: Actor, *, limit: int = 100, after: str = "") -> Page[EventRecord]:
        """One page of the server's own events, the latest first."""
        await self.check(actor, "event.read", Resource("event"))
        return await self.store.events_of_server(limit=limit, after_cursor=after)

    async def _look(self) -> Readiness:
        stored, lacking, control = await asyncio.gather(self._ask_store(), self._lacking(), self._ask_control())
        if stored:
            return Readiness(False, (stored, *lacking, *control))
        trouble = self.store.trouble()
        reasons = tuple(dict.fromkeys((*lacking, *([trouble] if trouble else []), *control)))
        return Readiness(True, reasons, degraded=bool(reasons))

    async def _ask_store(self) -> str:
        try:
            await self.store.ping()
        except CorralError as error:
            return error.message
        return ""

    async def _lacking(self) -> list[str]:
        if self.folder is None:
            return []
        if self._disk is None or self._disk.done():  # a disk that hangs takes one thread, not one for each question
            self._disk = asyncio.ensure_future(asyncio.to_thread(shortages, self.folder, "front"))
        try:
            async with asyncio.timeout(_PATIENCE):
                return await asyncio.shield(self._disk)
        except TimeoutError:
            return [f"The disk that holds Corral's data has not answered for {_PATIENCE:.0f} s; look at it."]

    async def _ask_control(self) -> list[str]:
        """The problems that control reports, or the fact that it does not answer."""
        if isinstance(self.control, NoControl):
            return []
        try:
            async with asyncio.timeout(_PATIENCE):
                said = await self.control.request("/ping")
        except TimeoutError:
            return [f"The scheduler has not answered for {_PATIENCE:.0f} s: jobs are taken, and none begins or ends."]
        except CorralError as error:
            return [error.message]
        starting = [] if said.get("ready") else ["The scheduler is still starting."]
        return [*starting, *map(str, said.get("reasons", ()))]
