"""Why: a reader holds one piece of a log at a time, whatever is written, and the socket's back pressure is its pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Protocol

PIECE: Final = 64 * 1024
"""Bytes that are read and sent at once; a reader who takes nothing holds three or four of these."""
WAIT: Final = 15.0
"""Seconds that one wait for more may take."""


class LogSource(Protocol):
    """The bytes of one stream of an attempt, or of all attempts of a task, growing while it runs."""

    @property
    def attempt(self) -> str:
        """The attempt's id, or the task's."""
        ...

    @property
    def stream(self) -> str:
        """`all`, or one of the streams that the attempt keeps apart."""
        ...

    async def size(self) -> int:
        """Bytes there are now; those before `first` may be gone."""
        ...

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Up to `limit` bytes from `offset` on, and where they really begin (later, when the head is gone)."""
        ...

    async def tail(self, lines: int) -> int:
        """The offset at which the last `lines` lines begin."""
        ...

    async def wait(self, offset: int, seconds: float) -> bool:
        """Wait for bytes beyond `offset` or the end, at most so long; False once it has ended and has no more."""
        ...

    async def close(self) -> None:
        """Let go of the file."""
        ...


async def read_source(source: LogSource, offset: int, end: int, piece: int = PIECE) -> AsyncIterator[bytes]:
    """The bytes from `offset` to `end`, in pieces; closes the source."""
    try:
        while offset < end:
            begin, data = await source.read(offset, min(piece, end - offset))
            if not data:
                return
            yield data
            await asyncio.sleep(0)  # a socket that takes everything at once never lets the others have their turn
            offset = begin + len(data)
    finally:
        await source.close()


async def follow_source(source: LogSource, offset: int, piece: int = PIECE) -> AsyncIterator[bytes]:
    """The bytes from `offset` on until the source has ended, in pieces as they are written; closes the source."""
    try:
        while True:
            begin, data = await source.read(offset, piece)
            if data:
                yield data
                await asyncio.sleep(0)
                offset = begin + len(data)
            elif not await source.wait(offset, WAIT):
                return
    finally:
        await source.close()
