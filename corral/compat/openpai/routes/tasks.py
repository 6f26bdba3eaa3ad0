"""OpenPAI's routes for the attempts of a task and their logs; log URLs work without a token, so they are signed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Final
from urllib.parse import quote, urlencode

from fastapi import Path, Request
from starlette.responses import Response, StreamingResponse

from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.api.log_reader import LogSource, read_source
from corral.api.stream_limits import HoldsSignedLogs
from corral.compat.openpai.records.views import LogLocation, LogLocations
from corral.compat.openpai.routes.callers import AnyCaller
from corral.compat.openpai.routes.gateway_paths import CAME_BY
from corral.compat.openpai.routes.jobs import Job, number_of, owner_and_name
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.service.errors import OpenPaiRefusal, bad_token
from corral.compat.openpai.service.logs import SignedFolder, SignedLog, no_log

router = late_router()
internal = late_router()
"""The routes below `/api/internal`."""

TAIL_BYTES: Final = 16 * 1024
"""Bytes at the end of a log that a tail returns."""
_PREFIX: Final = "user-"
_OLD_PREFIX: Final = "user.pai."
"""The present and the former prefix of a log file's name; the stream's name follows it."""
Role = Annotated[str, Path(max_length=300)]
_TASK: Final = "/jobs/{ref}/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts"


@router.get(_TASK)
async def get_task(request: Request, actor: AnyCaller, ref: Job, attempt: str, role: Role, index: str) -> Json:
    """Return one task of a job attempt, with all its runs."""
    none = OpenPaiRefusal("NoTaskError", f"Task {role}-{index[:50]} is not found.")
    user, name = owner_and_name(ref)
    numbers = number_of(attempt, none), number_of(index, none)
    return Json(await openpai_of(request).jobs.task(actor, user, name, numbers[0], role, numbers[1]))


@router.get(f"{_TASK}/{{run}}/logs")
async def get_logs(
    request: Request, actor: AnyCaller, ref: Job, attempt: str, role: Role, index: str, run: str
) -> Json:
    """Return the URLs of the logs of one run of a task."""
    user, name = owner_and_name(ref)
    number, task, own = (number_of(text, no_log()) for text in (attempt, index, run))
    places = await openpai_of(request).logs.places(actor, user, name, number, role, task, own)
    query = request.query_params
    tail = "true" in (query.get("tail-mode"), query.get("tailMode"))
    base = _base(request)
    return Json(LogLocations(tuple(LogLocation(place.stream, address(base, place, tail=tail)) for place in places)))


def _base(request: Request) -> str:
    """Return the server's URL as the caller reached it."""
    return f"{str(request.base_url).rstrip('/')}{request.scope.get(CAME_BY, '')}"


def address(base: str, place: SignedLog, *, tail: bool) -> str:
    """Return the URL of one stream of a log, whole or its tail."""
    query = {
        "username": place.user,
        "framework-name": place.framework,
        "pod-uid": place.attempt,
        "taskrole": place.role,
        "expires": place.expires,
        "signature": place.signature,
    }
    return f"{base}/api/internal/{'tail-logs' if tail else 'logs'}/{_PREFIX}{place.stream}?{urlencode(query)}"


@internal.get("/logs/{name}", dependencies=[HoldsSignedLogs])
async def whole_log(request: Request, name: str) -> Response:
    """Return a log from its beginning to its present end."""
    sources = await _sources(request, name)
    return _text(_parts(sources))


@internal.get("/logs/{attempt}/{expires}/{signature}/{name:path}", dependencies=[HoldsSignedLogs])
async def log_in_folder(request: Request, attempt: str, expires: str, signature: str, name: str) -> Response:
    """Return a log in the folder of one run of a task.

    Clients of version 1 name it `user.pai.stdout`; without a name, the answer has all streams.
    """
    if not signature.isascii():
        raise bad_token()
    folder = SignedFolder(attempt, number_of(expires, bad_token()), signature)
    return _text(_parts(await openpai_of(request).logs.in_folder(folder, _stream(name) or "all")))


def folder_address(request: Request, folder: SignedFolder) -> str:
    """Return the URL of a folder of logs, to which clients append a file name."""
    return f"{_base(request)}/api/internal/logs/{quote(folder.attempt)}/{folder.expires}/{folder.signature}/"


@internal.get("/tail-logs/{name}", dependencies=[HoldsSignedLogs])
async def end_of_log(request: Request, name: str) -> Response:
    """Return the tail of a log."""
    sources = await _sources(request, name)
    return _text(_ends(sources))


async def _sources(request: Request, name: str) -> Sequence[LogSource]:
    query = request.query_params
    expires = number_of(query.get("expires", ""), bad_token())
    attempt, signature = query.get("pod-uid", ""), query.get("signature", "")
    if not (signature.isascii() and attempt):
        raise bad_token()
    return await openpai_of(request).logs.open(attempt, _stream(name), expires, signature)


def _stream(name: str) -> str:
    """Return the stream of a log file's name."""
    return name.removeprefix(_OLD_PREFIX).removeprefix(_PREFIX)


async def _parts(sources: Sequence[LogSource]) -> AsyncIterator[bytes]:
    """Yield all sources whole, one after the other."""
    for source in sources:
        async for piece in read_source(source, 0, await source.size()):
            yield piece


async def _ends(sources: Sequence[LogSource]) -> AsyncIterator[bytes]:
    """Yield the tail of every source."""
    for source in sources:
        size = await source.size()
        async for piece in read_source(source, max(0, size - TAIL_BYTES), size):
            yield piece


def _text(pieces: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(pieces, media_type="text/plain; charset=utf-8", headers={"Cache-Control": "no-store"})
