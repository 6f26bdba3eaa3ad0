"""Why: an API server that is slow and is asked for much at once answers nothing in time; asked for less, it gets more done.

Every call that runs out of time was work for nothing and is repeated, so a crowd of them can keep a busy server from
ever finishing one. How many calls go out at once therefore follows what comes back, as TCP's window does (additive
increase, multiplicative decrease: Chiu and Jain, Computer Networks 17, 1989). Who waits here has not begun: its deadline
begins with its turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from corral.kernel.errors import TooManyRequests, Unavailable

LEAST: Final = 2.0
MOST: Final = 32.0
"""As many as there are connections."""
_ROUND_SECONDS: Final = 3.0
"""Calls that were out together fail together: they count once."""


class Gate:
    """Lets calls through, first come first served, no more at once than the server answers in time."""

    def __init__(self, most: float = MOST) -> None:
        """`most` is how many calls may ever be out at once."""
        self.width = self._most = most
        self._out = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._narrowed_at = -_ROUND_SECONDS

    @asynccontextmanager
    async def call(self) -> AsyncIterator[None]:
        """Around one call: waits for its turn, and learns from how it ends."""
        await self._enter()
        try:
            yield
        except (Unavailable, TooManyRequests):
            self._narrow()
            raise
        else:
            self.width = min(self._most, self.width + 1.0 / self.width)
        finally:
            self._out -= 1
            self._admit()

    def _narrow(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._narrowed_at >= _ROUND_SECONDS:
            self._narrowed_at = now
            self.width = max(LEAST, self.width / 2)

    async def _enter(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._out -= 1
            self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self._out < int(self.width):
            turn = self._waiting.popleft()
            if not turn.done():
                self._out += 1
                turn.set_result(None)
