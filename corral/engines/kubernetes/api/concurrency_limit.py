"""Limit the concurrent calls to the API server to the number that it answers in time.

A call that times out is wasted work and is repeated. Many such calls can keep a busy server from finishing any. The
number of concurrent calls therefore follows the results, like TCP's window (additive increase, multiplicative decrease:
Chiu and Jain, Computer Networks 17, 1989). A call's deadline starts when it is let through.
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
"""Concurrent calls at most: the number of connections."""
_ROUND_SECONDS: Final = 3.0
"""Seconds in which further failures do not narrow the gate again: calls sent together fail together."""


class Gate:
    """An adaptive concurrency limit for calls, first come first served."""

    def __init__(self, most: float = MOST) -> None:
        """`most` is the upper limit of concurrent calls."""
        self.width = self._most = most
        self._out = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._narrowed_at = -_ROUND_SECONDS

    @asynccontextmanager
    async def call(self) -> AsyncIterator[None]:
        """Enclose one call: wait for its turn, and adapt the limit to its result."""
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
