"""A bound on the memory of large WebSocket messages that services of jobs have begun, of one user and of all."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

from corral.kernel.errors import TooManyRequests

_FREE: Final = 256 * 1024
"""Bytes of each WebSocket that are not counted; usual messages are smaller."""


class MessageMemory:
    """Counts what is held of large messages."""

    def __init__(self, of_user: int = 32 * 1024**2, in_all: int = 128 * 1024**2) -> None:
        self._of_user, self._in_all = of_user, in_all
        self._held: Counter[str] = Counter()
        self.total = 0
        """Bytes that are counted now."""

    @contextlib.contextmanager
    def share(self, user: str) -> Iterator[MessageShare]:
        """The share of one WebSocket of a user; it is given back at the end of the block."""
        share = MessageShare(self, user)
        try:
            yield share
        finally:
            share.clear()

    def change(self, user: str, by: int) -> None:
        """Count more or fewer bytes.

        Raises TooManyRequests when there would be too many, which are then not counted.
        """
        if by > 0 and (self._held[user] + by > self._of_user or self.total + by > self._in_all):
            raise TooManyRequests("messages-too-large", "Too many large messages are under way; try again.")
        self._held[user] += by
        self.total += by
        if self._held[user] <= 0:
            del self._held[user]


class MessageShare:
    """What one WebSocket holds of a message that is not passed on yet."""

    def __init__(self, memory: MessageMemory, user: str) -> None:
        self._memory = memory
        self._user = user
        self._size = self._counted = 0

    def grow(self, by: int) -> None:
        """Hold more bytes.

        Raises TooManyRequests.
        """
        self._size += by
        counted = max(0, self._size - _FREE)
        self._memory.change(self._user, counted - self._counted)
        self._counted = counted

    def shrink(self, by: int) -> None:
        """Hold fewer bytes: some were passed on."""
        self._size -= by
        counted = max(0, self._size - _FREE)
        self._memory.change(self._user, counted - self._counted)
        self._counted = counted

    def clear(self) -> None:
        """Hold nothing: the message was passed on."""
        self._memory.change(self._user, -self._counted)
        self._size = self._counted = 0
