"""Why: a job's log is one stream for its reader, whichever tasks write, start late or are tried again meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, Final

from corral.api.reading import PIECE, LogSource, follow_source, read_source
from corral.kernel.errors import CorralError

MERGED: Final = 64
"""How many tasks' logs one stream merges."""
_PIECE: Final = 16 * 1024
"""Bytes of each log that are read at once: a reader who takes nothing makes every log hold two of these."""


class Merge:
    """Interleaves logs by whole lines as their bytes arrive; of each log one piece at most is in memory."""

    def __init__(self, *, prefix: bool, tail: int | None, follow: bool) -> None:
        self._prefix = prefix
        self._tail = tail
        self._follow = follow
        self._seen: set[tuple[str, str]] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)

    async def add(self, sources: Sequence[tuple[str, int, LogSource]]) -> None:
        """Take in the logs of attempts that are not among them yet."""
        for role, index, source in sources:
            if (source.attempt, source.stream) in self._seen:
                await source.close()
                continue
            self._seen.add((source.attempt, source.stream))
            self._begin(self._pump(f"{role}-{index}", source))

    async def stream(self, scout: Coroutine[Any, Any, None] | None) -> AsyncIterator[bytes]:
        """Everything that the logs bring, until all have ended and `scout`, which adds more, has too."""
        if scout is not None:
            self._begin(scout)
        try:
            while self._pumps or not self._queue.empty():
                piece = await self._queue.get()
                if piece is not None:
                    yield piece
        finally:
            running = list(self._pumps)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._until_done(work))
        self._pumps.add(task)

    async def _until_done(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except CorralError as error:
            await self._queue.put(f"(the log ends here: {error})\n".encode())
        finally:
            task = asyncio.current_task()
            if task is not None:
                self._pumps.discard(task)
        await self._queue.put(None)  # so that the reader sees that one fewer runs

    async def _pump(self, name: str, source: LogSource) -> None:
        try:
            offset = 0 if self._tail is None else await source.tail(self._tail)
            if self._follow:
                pieces = follow_source(source, offset, _PIECE)
            else:
                pieces = read_source(source, offset, await source.size(), _PIECE)
            async for lines in whole_lines(pieces, f"{name} | ".encode() if self._prefix else b""):
                await self._queue.put(lines)
        finally:
            await source.close()


async def whole_lines(pieces: AsyncIterator[bytes], before: bytes) -> AsyncIterator[bytes]:
    """Whole lines with `before` in front of each; a line longer than a piece is cut, the last one is ended."""
    rest = b""
    async for piece in pieces:
        text = rest + piece
        cut = text.rfind(b"\n") + 1 or (len(text) if len(text) > PIECE else 0)
        rest = text[cut:]
        if cut:
            yield b"".join(before + line + b"\n" for line in text[:cut].removesuffix(b"\n").split(b"\n"))
    if rest:
        yield before + rest + b"\n"
