"""A real store, control and bridge between a fake engine and fake cluster objects, started and killed together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from corral.control.bridge import AccountsOfNamespaces, Bridge
from corral.control.loop import Control
from corral.service.context import Context
from corral.service.service import Service
from corral.spec.job_objects import ObjectKind, UnifiedJobKind
from tests.control.harness import House
from tests.control.paper_objects import Object, PaperObjects

ROLE = {"name": "worker", "command": ["train"], "resources": {"devices": {"count": 1}}}


def spec(replicas: int = 1, least: int = 1, most: int = 4, **fields: Any) -> dict[str, Any]:
    counts = {"role": "worker", "replicas": replicas, "minReplicas": least, "maxReplicas": most}
    return {"jobType": "shell", "roles": [ROLE], "replicaSpec": counts, **fields}


class Bridged:
    """A house with a bridge to fake objects, both started and abandoned together."""

    def __init__(self, house: House) -> None:
        self.house, self.objects = house, PaperObjects()
        self.kinds: tuple[ObjectKind, ...] = (UnifiedJobKind(),)
        self.accounts, self.server = "team=ada", "s"
        self._running: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        def beside(control: Control) -> None:
            self.service = Service(Context(self.house.control_store, key=b"k" * 32, clock=self.house.clock))
            accounts = AccountsOfNamespaces(self.accounts)
            self.bridge = Bridge(control, self.service, self.objects, self.kinds, accounts, server=self.server)

        await self.house.begin(beside)
        self.objects.begin()
        self._running = asyncio.create_task(self.bridge.run())

    async def abandon(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
            self._running = None
            await self.house.abandon()

    async def until(self, holds: Callable[[], Any]) -> Any:
        async with asyncio.timeout(120):
            while not (found := holds()):
                assert self._running is None or not self._running.done(), self._running
                await asyncio.sleep(0.01)
        return found

    async def quiet(self) -> None:
        """Wait until every change was handled."""
        calm = 0
        while calm < 5:
            bridge, control = self.bridge, self.house.control
            idle = not (bridge._waiting or bridge._busy or self.objects.untold) and control.dispatcher.idle
            calm = calm + 1 if idle else 0
            await asyncio.sleep(0.02)

    def status(self, uid: str) -> Object:
        return dict(self.objects.objects[uid].get("status", {}))

    def condition(self, uid: str, kind: str) -> Object:
        return next((each for each in self.status(uid).get("conditions", ()) if each["type"] == kind), {})

    def targets(self, uid: str) -> int:
        return sum(self.objects.targets(uid).values())
