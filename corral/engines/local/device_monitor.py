"""Look at the machine's devices periodically in a thread, since a device may fail while the server runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from corral.devices.device_mismatch import kept
from corral.model.inventory import Inventory

LOOK_SECONDS = 30.0
_log = logging.getLogger(__name__)


class Presence:
    """Reports the machine's inventory to an engine, now and whenever it changes."""

    def __init__(self, tell: Callable[[Inventory], None], *, seconds: float = LOOK_SECONDS) -> None:
        self._tell = tell
        self._seconds = seconds
        self._look: Callable[[], Inventory] | None = None
        self._told: Inventory | None = None

    def follow(self, look: Callable[[], Inventory], *, again: bool = True) -> None:
        """Report the result of `look`, and with `again` every later change."""
        self._look = look if again else None
        self._say(look())

    async def run(self) -> None:
        """Look again periodically, until cancelled."""
        while True:
            await asyncio.sleep(self._seconds)
            await self.look_again()

    async def look_again(self) -> None:
        """Look once. A failure is logged, and the last report stays."""
        look = self._look
        if look is None:
            return
        try:
            seen = await asyncio.to_thread(look)
        except Exception:
            _log.exception("the devices of this machine could not be looked at; what was seen before holds")
            return
        if look is self._look:
            self._say(seen)

    def _say(self, seen: Inventory) -> None:
        self._told = seen if self._told is None else kept(self._told, seen)
        self._tell(self._told)
