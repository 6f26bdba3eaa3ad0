"""Why: a log is bytes with offsets that never change; ranges, tails and followers all read the same source, in pieces.

A follower holds one piece (256 KiB) at a time and waits for the source's own signal, so its memory is constant whatever
the task writes, and the socket's back pressure is the only pace.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Annotated, Final, Literal, Protocol

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response, StreamingResponse

from corral.api.bounds import Flag, Index, Ref, Role
from corral.api.callers import Caller, service_of
from corral.api.wire import answers, refused_with
from corral.kernel.errors import CorralError, InvalidInput

router = APIRouter(tags=["logs"])

PIECE: Final = 256 * 1024
"""Bytes that are read and sent at once."""
MAX_RANGE: Final = 64 * 1024 * 1024
"""Bytes that one answer without `follow` may have; read on from X-Corral-Next."""
_WAIT: Final = 15.0
_MERGED: Final = 64
_RANGE: Final = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))")


class LogSource(Protocol):
    """The bytes of one stream of one attempt, growing while it runs."""

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


_TEXT: Final = {"content": {"text/plain": {"schema": {"type": "string"}}}}
_ANSWERS: Final = {status: shown for status, shown in answers(None).items() if status != 200} | {
    200: {"description": "The bytes; X-Corral-Offset and X-Corral-Next say which", **_TEXT},
    206: {"description": "The bytes of the Range that was asked for", **_TEXT},
    416: refused_with(416),
}


@router.get("/jobs/{ref}/tasks/{role}/{index}/logs", responses=_ANSWERS)
async def task_log(
    request: Request,
    actor: Caller,
    ref: Ref,
    role: Role,
    index: Index,
    stream: Literal["all", "stdout", "stderr"] = "all",
    attempt: Annotated[str, Query(max_length=200, description="An attempt's id; default: the latest.")] = "",
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_RANGE)] = MAX_RANGE,
    tail: Annotated[int | None, Query(ge=0, le=1_000_000, description="Only the last so many lines.")] = None,
    follow: Flag = False,
    range_: Annotated[str, Header(alias="range", max_length=100)] = "",
) -> Response:
    """What a task printed; `follow=true` goes on until the task has ended."""
    source: LogSource = await service_of(request).task_log(actor, ref, role, index, attempt=attempt, stream=stream)
    try:
        size = await source.size()
        end = min(size, offset + limit)
        partial = False
        if tail is not None:
            offset = max(offset, await source.tail(tail))
            end = min(size, offset + limit)
        elif range_ and not follow:
            offset, end = _range(range_, size)
            end = min(end, offset + MAX_RANGE)
            partial = True
        if follow:
            stream_ = _follow(source, offset)
            return StreamingResponse(stream_, media_type="text/plain; charset=utf-8", headers=_headers(offset, None))
    except BaseException:
        await source.close()
        raise
    headers = _headers(min(offset, size), end)
    if partial:
        headers["Content-Range"] = f"bytes {offset}-{end - 1}/{size}"
    pieces = _pieces(source, min(offset, size), end)
    media = "text/plain; charset=utf-8"
    return StreamingResponse(pieces, 206 if partial else 200, media_type=media, headers=headers)


@router.get("/jobs/{ref}/logs", responses=_ANSWERS)
async def job_log(
    request: Request,
    actor: Caller,
    ref: Ref,
    follow: Flag = False,
    prefix: Flag = True,
    tail: Annotated[int | None, Query(ge=0, le=1_000_000)] = None,
) -> Response:
    """What all tasks printed (the first 64 of them), line by line with the task's name before each line."""
    sources = await service_of(request).job_logs(actor, ref, limit=_MERGED)
    stream = _merged([(f"{role}-{index}", source) for role, index, source in sources], follow, prefix, tail)
    return StreamingResponse(stream, media_type="text/plain; charset=utf-8", headers={"Cache-Control": "no-store"})


def _headers(offset: int, end: int | None) -> dict[str, str]:
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "no-store", "X-Corral-Offset": str(offset)}
    if end is not None:
        headers["X-Corral-Next"] = str(max(offset, end))
    return headers


def _range(header: str, size: int) -> tuple[int, int]:
    match = _RANGE.fullmatch(header.strip())
    if match is None:
        raise InvalidInput(
            "invalid-range", "The Range header must read bytes=FIRST-LAST, bytes=FIRST- or bytes=-COUNT."
        )
    if match[3] is not None:
        first, end = max(0, size - int(match[3])), size
    else:
        first, end = int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)
    if first >= end:
        raise _Unsatisfiable("range-not-satisfiable", f"The log has {size} bytes now; ask for a range inside of them.")
    return first, end


class _Unsatisfiable(CorralError):
    status = 416


async def _pieces(source: LogSource, offset: int, end: int) -> AsyncIterator[bytes]:
    try:
        while offset < end:
            begin, data = await source.read(offset, min(PIECE, end - offset))
            if not data:
                return
            yield data
            offset = begin + len(data)
    finally:
        await source.close()


async def _follow(source: LogSource, offset: int) -> AsyncIterator[bytes]:
    try:
        while True:
            begin, data = await source.read(offset, PIECE)
            if data:
                yield data
                offset = begin + len(data)
            elif not await source.wait(offset, _WAIT):
                return
    finally:
        await source.close()


async def _lines(name: str, source: LogSource, follow: bool, offset: int) -> AsyncIterator[bytes]:
    """Whole lines of one source, each with its name before it; a very long line is cut into pieces."""
    end = 2**62 if follow else await source.size()
    before = f"{name} | ".encode() if name else b""
    rest = b""
    pieces = _follow(source, offset) if follow else _pieces(source, offset, end)
    async for piece in pieces:
        text = rest + piece
        cut = text.rfind(b"\n") + 1 or (len(text) if len(text) > PIECE else 0)
        rest = text[cut:]
        if cut:
            yield b"".join(before + line + b"\n" for line in text[:cut].removesuffix(b"\n").split(b"\n"))
    if rest:
        yield before + rest + b"\n"


async def _merged(
    sources: list[tuple[str, LogSource]], follow: bool, prefix: bool, tail: int | None
) -> AsyncIterator[bytes]:
    """The sources interleaved as their bytes arrive; one piece of each at most is in memory."""
    queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=4)

    async def pump(name: str, source: LogSource) -> None:
        try:
            offset = 0 if tail is None else await source.tail(tail)
            async for piece in _lines(name if prefix else "", source, follow, offset):
                await queue.put(piece)
        except CorralError as error:
            await queue.put(f"{name} | ({error})\n".encode())
        finally:
            await source.close()
        await queue.put(None)

    pumps = [asyncio.create_task(pump(name, source)) for name, source in sources]
    try:
        left = len(pumps)
        while left:
            piece = await queue.get()
            if piece is None:
                left -= 1
            else:
                yield piece
    finally:
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
