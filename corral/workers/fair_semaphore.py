"""A fair semaphore: waiting callers take turns, so that one with many requests does not delay the others."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque


class FairSemaphore:
    """Gives out a fixed number of places, round robin over callers and first come, first served within each."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def acquire(self, caller: str) -> None:
        """Take a place as soon as one is free; `release` must follow."""
        if self._free and not self._waiting:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # the place was given at the moment of the cancellation
            else:
                self._forget(caller, turn)
            raise

    def release(self) -> None:
        """Give the place to the oldest request of the next waiting caller."""
        while self._waiting:
            caller, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[caller] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _forget(self, caller: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(caller)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[caller]
