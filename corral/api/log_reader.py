"""Read or follow a log piece by piece, so that memory stays constant and back pressure sets the speed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Protocol

PIECE: Final = 64 * 1024
"""Bytes read and sent at once. A client that does not read makes the server hold three or four such pieces."""
WAIT: Final = 15.0
"""Seconds that one wait for more bytes may take."""


class LogSource(Protocol):
    """The bytes of one stream of an attempt, or of all attempts of a task; it grows while they run."""

    @property
    def attempt(self) -> str:
        """The id of the attempt or of the task."""
        ...

    @property
    def stream(self) -> str:
        """`all`, or a stream that the attempt keeps apart."""
        ...

    async def size(self) -> int:
        """Return the number of bytes so far; the first ones may have been removed."""
        ...

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Return up to `limit` bytes from `offset`, and their real offset (later if the head has been removed)."""
        ...

    async def tail(self, lines: int) -> int:
        """Return the offset at which the last `lines` lines begin."""
        ...

    async def wait(self, offset: int, seconds: float) -> bool:
        """Wait at most `seconds` for bytes beyond `offset` or the end; False if it has ended and has no more."""
        ...

    async def close(self) -> None:
        """Close the file."""
        ...


async def read_source(source: LogSource, offset: int, end: int, piece: int = PIECE) -> AsyncIterator[bytes]:
    """Yield the bytes from `offset` to `end` in pieces, then close the source."""
    try:
        while offset < end:
            begin, data = await source.read(offset, min(piece, end - offset))
            if not data:
                return
            yield data
            await asyncio.sleep(0)  # sending to a fast socket never yields to other tasks by itself
            offset = begin + len(data)
    finally:
        await source.close()


async def follow_source(source: LogSource, offset: int, piece: int = PIECE) -> AsyncIterator[bytes]:
    """Yield the bytes from `offset` in pieces as they are written, until the source ends; then close it."""
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
