"""Merge the logs of a job's tasks into one stream, including tasks and attempts that start later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, Final

from corral.api.log_reader import PIECE, LogSource, follow_source, read_source
from corral.kernel.errors import CorralError

MERGED: Final = 64
"""Logs of tasks that one stream merges at most."""
_PIECE: Final = 16 * 1024
"""Bytes read at once from each log. A reader that takes nothing makes every log hold two such pieces."""


class Merge:
    """Interleaves logs by whole lines in order of arrival, with at most one piece of each log in memory."""

    def __init__(self, *, prefix: bool, tail: int | None, follow: bool) -> None:
        self._prefix = prefix
        self._tail = tail
        self._follow = follow
        self._seen: set[tuple[str, str]] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)

    async def add(self, sources: Sequence[tuple[str, int, LogSource]]) -> None:
        """Add logs, except those of attempts that were added before."""
        for role, index, source in sources:
            if (source.attempt, source.stream) in self._seen:
                await source.close()
                continue
            self._seen.add((source.attempt, source.stream))
            self._begin(self._pump(f"{role}-{index}", source))

    async def stream(self, scout: Coroutine[Any, Any, None] | None) -> AsyncIterator[bytes]:
        """Yield the merged lines, until all logs and `scout`, which adds more logs, have ended."""
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
        await self._queue.put(None)  # wakes the reader, which then sees that one pump fewer runs

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
    """Yield whole lines with `before` in front of each; cut lines longer than a piece, and end the last line."""
    rest = b""
    async for piece in pieces:
        text = rest + piece
        cut = text.rfind(b"\n") + 1 or (len(text) if len(text) > PIECE else 0)
        rest = text[cut:]
        if cut:
            yield b"".join(before + line + b"\n" for line in text[:cut].removesuffix(b"\n").split(b"\n"))
    if rest:
        yield before + rest + b"\n"
