"""The server's health as events: once when something stops working, once when everything works again."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError
from corral.model.views import Readiness
from corral.model.writes import ServerEvent

LOOK_SECONDS: Final = 10.0
DEGRADED: Final = "server.degraded"
RECOVERED: Final = "server.recovered"
_UNTOLD: Final = 16
"""So many of the latest events wait for a store that takes nothing."""
_FIGURES: Final = re.compile(r"\d+")
_log = logging.getLogger(__name__)


class Health:
    """What was last told of the server's health. What is wrong is told when two looks in a row have found it.

    So a start, or a half that is replaced at once, is not told of.
    """

    def __init__(self) -> None:
        self._suspected: frozenset[str] = frozenset()
        self._told: frozenset[str] = frozenset()
        self._since = 0.0

    def look(self, found: Readiness, at: float) -> ServerEvent | None:
        """What is to be told after a look at a time."""
        reasons = frozenset(_FIGURES.sub("", each) for each in found.reasons)  # figures change from look to look
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
    """Looks every ten seconds; what the store does not take is told when it does."""

    def __init__(
        self,
        look: Callable[[], Awaitable[Readiness]],
        tell: Callable[[Sequence[ServerEvent]], Awaitable[None]],
        clock: Clock,
        who: str,
    ) -> None:
        """`who` looks: the process and its machine."""
        self._look, self._tell, self._clock, self._who = look, tell, clock, who
        self._health = Health()
        self._untold: deque[ServerEvent] = deque(maxlen=_UNTOLD)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except OSError as error:
                _log.warning("the server's health could not be looked at: %s", error)

    async def look(self) -> None:
        """Look once."""
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
