"""Limit the calls in progress to one storage, and queue those that wait.

A hanging storage must not take all threads, and one user must not take all calls to a storage.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Final

from corral.kernel.errors import Unavailable

AT_ONCE: Final = 8
"""Calls in progress to one storage; a hanging one counts until it ends."""
PER_USER: Final = 2
"""Calls of one user in progress to one storage."""
_RETRY_SECONDS: Final = 5


class CallSlots:
    """The slots of one storage. A free slot goes to the longest waiting user below the limit per user."""

    def __init__(self, storage: str) -> None:
        self._storage = storage
        self._used: Counter[str] = Counter()
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    @property
    def idle(self) -> bool:
        """Whether no call is in progress."""
        return not self._used

    async def take(self, user: str, seconds: float) -> None:
        """Take a slot for a user's call, waiting at most `seconds` for it.

        Raises Unavailable `storage-busy`.
        """
        if self._has_room(user):
            self._used[user] += 1
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((user, slot))
        try:
            async with asyncio.timeout(seconds):
                await slot
        except TimeoutError:
            self._leave(user, slot)
            raise self._busy(user) from None
        except BaseException:
            self._leave(user, slot)
            raise

    def give_back(self, user: str) -> None:
        """Release a slot and pass it to the next waiting call."""
        self._used[user] -= 1
        if not self._used[user]:
            del self._used[user]
        for waiting in tuple(self._waiting):
            if self._used.total() >= AT_ONCE:
                return
            if self._has_room(waiting[0]):
                self._waiting.remove(waiting)
                self._used[waiting[0]] += 1
                waiting[1].set_result(None)

    def _has_room(self, user: str) -> bool:
        return self._used[user] < PER_USER and self._used.total() < AT_ONCE

    def _leave(self, user: str, slot: asyncio.Future[None]) -> None:
        """Stop waiting; a slot that was assigned at the last moment is passed on."""
        if (user, slot) in self._waiting:
            self._waiting.remove((user, slot))
        else:
            self.give_back(user)

    def _busy(self, user: str) -> Unavailable:
        whose, most = ("You have", PER_USER) if self._used[user] >= PER_USER else ("There are", AT_ONCE)
        message = (
            f"{whose} {most} calls under way in the storage {self._storage}, the most at once; try again in a moment."
        )
        return Unavailable("storage-busy", message, retry_after=_RETRY_SECONDS)
