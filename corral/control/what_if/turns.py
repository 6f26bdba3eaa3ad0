"""Let one question after the other be answered, and refuse those that would wait for too long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from corral.kernel.errors import Unavailable

PATIENCE: Final = 20.0
"""Seconds that a question waits for the ones before it."""
_LONGEST_PATIENCE: Final = 300.0
"""Seconds that a question may ask to wait, when nobody holds a connection for it."""
_MOST_WAITING: Final = 64
"""Questions that wait for their turn at most."""
_RETRY: Final = 10


class Turns:
    """The turns of questions of one kind."""

    def __init__(self, code: str, busy: str) -> None:
        """`code` and the sentence `busy` are what is refused with while others are answered."""
        self._code = code
        self._busy = busy
        self._turn = asyncio.Lock()
        self._waiting = 0

    @asynccontextmanager
    async def taken(self, patience: float) -> AsyncIterator[None]:
        """Hold the turn, for which it waits `patience` seconds at most; raises Unavailable beyond that."""
        await self._take(min(patience, _LONGEST_PATIENCE))
        try:
            yield
        finally:
            self._turn.release()

    async def _take(self, patience: float) -> None:
        busy = Unavailable(self._code, self._busy, retry_after=_RETRY)
        if self._waiting >= _MOST_WAITING:
            raise busy
        self._waiting += 1
        try:
            async with asyncio.timeout(patience):
                await self._turn.acquire()
        except TimeoutError:
            raise busy from None
        finally:
            self._waiting -= 1
