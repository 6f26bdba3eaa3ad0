"""Server events about health: one when something stops working, one when everything works again."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError
from corral.model.store_writes import ServerEvent
from corral.model.views import Readiness

LOOK_SECONDS: Final = 10.0
DEGRADED: Final = "server.degraded"
RECOVERED: Final = "server.recovered"
_UNTOLD: Final = 16
"""Most events kept while the store refuses writes; the oldest are dropped."""
_FIGURES: Final = re.compile(r"\d+")
_log = logging.getLogger(__name__)


class Health:
    """The health that was reported last; a problem is reported when two checks in a row find it.

    So neither a start nor a process that is replaced at once is reported.
    """

    def __init__(self) -> None:
        self._suspected: frozenset[str] = frozenset()
        self._told: frozenset[str] = frozenset()
        self._since = 0.0

    def look(self, found: Readiness, at: float) -> ServerEvent | None:
        """The event to report after a check at time `at`, or None."""
        reasons = frozenset(_FIGURES.sub("", each) for each in found.reasons)  # numbers change between checks
        again, self._suspected = reasons & self._suspected, reasons
        if again - self._told:
            self._since = self._since or at
            self._told = self._told | again
            return ServerEvent(at, DEGRADED, " ".join(found.reasons))
        if self._told and not reasons:
            lasted, self._since, self._told = at - self._since, 0.0, frozenset()
            return ServerEvent(at, RECOVERED, f"Everything works again, after {max(0.0, lasted):.0f} s.")
        return None


class HealthWatch:
    """Checks health every ten seconds; events that the store refuses are stored later."""

    def __init__(
        self,
        look: Callable[[], Awaitable[Readiness]],
        tell: Callable[[Sequence[ServerEvent]], Awaitable[None]],
        clock: Clock,
        who: str,
    ) -> None:
        """`who` is the process that checks, with its machine."""
        self._look, self._tell, self._clock, self._who = look, tell, clock, who
        self._health = Health()
        self._untold: deque[ServerEvent] = deque(maxlen=_UNTOLD)

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except OSError as error:
                _log.warning("the server's health could not be looked at: %s", error)

    async def look(self) -> None:
        """Check once."""
        event = self._health.look(await self._look(), self._clock.now())
        if event is not None:
            self._untold.append(ServerEvent(event.at, event.kind, event.message, self._who))
        if not self._untold:
            return
        telling = list(self._untold)
        try:
            await self._tell(telling)
        except CorralError as error:
            _log.warning("the server's health could not be stored and is told later: %s", error.message)
            return
        self._untold.clear()
