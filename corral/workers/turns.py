"""Places that are given out one after the other, so that whoever asks for many waits for those of others in between."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque


class Turns:
    """So many places at once; callers who wait take turns, each in the order of its own requests."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def enter(self, caller: str) -> None:
        """Take a place, as soon as there is one; `leave` must follow."""
        if self._free and not self._waiting:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()  # the place came at the moment in which nobody wanted it any more
            else:
                self._forget(caller, turn)
            raise

    def leave(self) -> None:
        """Give the place to the first of the next caller who waits."""
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
