"""Routes that read and follow logs, by stable byte offsets.

A follower holds one piece (64 KiB) at a time and waits for a signal of the source. Its memory stays constant however
much a task writes, and the socket's back pressure sets its speed.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Final, Literal

from fastapi import Header, Query, Request
from starlette.responses import Response

from corral.api.authentication import Caller, service_of
from corral.api.held_stream import HeldStream
from corral.api.http_protocol import TOO_SLOW
from corral.api.json_responses import answers, refused_with
from corral.api.log_merge import MERGED, Merge
from corral.api.log_reader import LogSource, follow_source, read_source
from corral.api.parameters import Follow, Index, Ref, Role
from corral.api.routers import router_of
from corral.api.stream_limits import HoldsLogs
from corral.kernel.errors import CorralError, InvalidInput
from corral.model.records import ENDED_PHASES

router = router_of("logs")

_CUT: Final = f"(the log ends here: {TOO_SLOW})\n".encode()
_MEDIA: Final = "text/plain; charset=utf-8"
_RANGE: Final = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))")


_ATTEMPT: Final = "One attempt: its numbers (`1.0`), its id or `latest`; default: all attempts, one after the other."
_TEXT: Final = {"content": {"text/plain": {"schema": {"type": "string"}}}}
_ANSWERS: Final = {status: shown for status, shown in answers(None).items() if status != 200} | {
    200: {"description": "The bytes; X-Corral-Offset and X-Corral-Next say which", **_TEXT},
    206: {"description": "The bytes of the Range that was asked for", **_TEXT},
    416: refused_with(416),
}


@router.get("/jobs/{ref}/tasks/{role}/{index}/logs", responses=_ANSWERS, dependencies=[HoldsLogs])
async def task_log(
    request: Request,
    actor: Caller,
    ref: Ref,
    role: Role,
    index: Index,
    stream: Annotated[Literal["all", "stdout", "stderr"], Query(description="Which of its outputs.")] = "all",
    attempt: Annotated[str, Query(max_length=200, description=_ATTEMPT)] = "",
    offset: Annotated[int, Query(ge=0, le=2**62, description="Begin at this byte.")] = 0,
    limit: Annotated[int, Query(ge=1, le=2**62, description="Bytes at most; default: all there are now.")] = 2**62,
    tail: Annotated[int | None, Query(ge=0, le=1_000_000, description="Only this many of the last lines.")] = None,
    follow: Follow = False,
    range_: Annotated[str, Header(alias="range", max_length=100, description="A range of bytes, as HTTP has it.")] = "",
) -> Response:
    """Return the output of a task: all attempts in order, with a mark between.

    `follow=true` continues until the task ends. With `attempt`, the output is that of one attempt, and following ends
    with it. Offsets count the bytes of the same call without an offset, marks included.
    """
    service = service_of(request)
    if stream == "all":
        parts = await service.task_logs.whole(actor, ref, role, index, attempt=attempt)
        if len(parts) > 1:
            merged = await _merged(role, index, parts, tail=tail, follow=follow)
            return HeldStream(request, actor, merged, media_type=_MEDIA, headers={"Cache-Control": "no-store"})
        source: LogSource = parts[0]
    else:
        source = await service.task_logs.of_task(actor, ref, role, index, attempt=attempt, stream=stream)
    try:
        size = await source.size()
        end = min(size, offset + limit)
        partial = False
        if tail is not None:
            offset = max(offset, await source.tail(tail))
            end = min(size, offset + limit)
        elif range_ and not follow:
            offset, end = _range(range_, size)
            partial = True
        if follow:
            stream_ = follow_source(source, offset)
            return HeldStream(request, actor, stream_, media_type=_MEDIA, headers=_headers(offset, None))
    except BaseException:
        await source.close()
        raise
    headers = _headers(min(offset, size), end)
    if partial:
        headers["Content-Range"] = f"bytes {offset}-{end - 1}/{size}"
    pieces = read_source(source, min(offset, size), end)
    return HeldStream(request, actor, pieces, 206 if partial else 200, media_type=_MEDIA, headers=headers)


@router.get("/jobs/{ref}/logs", responses=_ANSWERS, dependencies=[HoldsLogs])
async def job_log(
    request: Request,
    actor: Caller,
    ref: Ref,
    follow: Follow = False,
    prefix: Annotated[bool, Query(description="Begin every line with the name of its task.")] = True,
    tail: Annotated[int | None, Query(ge=0, le=1_000_000, description="Only this many of the last lines.")] = None,
) -> Response:
    """Return the output of all tasks (the first 64), line by line, each line with its task's name."""
    service = service_of(request)
    merge = Merge(prefix=prefix, tail=tail, follow=follow)
    job = await service.jobs.get(actor, ref)
    await merge.add(await service.task_logs.of_job(actor, job.id, limit=MERGED))

    async def scout() -> None:
        """Add the logs of later attempts (retries, tasks that start) until the job ends."""
        async for _ in request.app.state.tailer.changes(job.id):
            over = (await service.jobs.get(actor, job.id)).state in ENDED_PHASES
            await merge.add(await service.task_logs.of_job(actor, job.id, limit=MERGED))
            if over:
                return

    stream = merge.stream(scout() if follow else None)
    cut = _CUT if prefix else b""  # without prefixes clients count the bytes, to resume where they ended
    headers = {"Cache-Control": "no-store"}
    return HeldStream(request, actor, stream, cut=cut, media_type=_MEDIA, headers=headers)


async def _merged(
    role: str, index: int, parts: Sequence[LogSource], *, tail: int | None, follow: bool
) -> AsyncIterator[bytes]:
    """Merge both streams of a task that keeps them apart, in order of arrival; the result has no offsets."""
    merge = Merge(prefix=False, tail=tail, follow=follow)
    await merge.add([(role, index, part) for part in parts])
    return merge.stream(None)


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
