"""Routes for profiles of running jobs: take, list, read, compare and remove them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Annotated, Final
from urllib.parse import quote, urlencode

import msgspec
from fastapi import Path, Query, Request
from fastapi.responses import Response
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from corral.api.authentication import Caller, service_of
from corral.api.exec import connect_to_control
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.parameters import Ref
from corral.api.routers import router_of
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId
from corral.model.profiles import ProfileComparison, ProfileList, ProfileReport, ProfileView
from corral.service.profiles.task_session import Enter, TaskStream

router = router_of("profiles")
_Id = Annotated[str, Path(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9-]{0,100}$", description="The id of a profile.")]
_TaskName = Annotated[str, msgspec.Meta(max_length=80)]
_PIECE: Final = 64 * 1024
"""Bytes of input in one frame to control."""
_FILE: Final = {status: shown for status, shown in answers(None, also=(409,)).items() if status != 200} | {
    200: {
        "description": "The file",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    },
}


class TakeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which profile to take: of which tasks (none: all that run, at most 64), and for how many seconds."""

    what: Annotated[str, msgspec.Meta(pattern="^(python|stacks|torch|jax|tensorflow|memory|system)$")] = "python"
    seconds: Annotated[int, msgspec.Meta(ge=0, le=60)] = 0
    tasks: Annotated[list[_TaskName], msgspec.Meta(max_length=64)] = []


@router.post(
    "/jobs/{ref}/profiles",
    status_code=202,
    responses=answers(ProfileView, 202, text="It is being taken", also=(409,)),
    openapi_extra=json_body(TakeBody),
)
async def take_profile(request: Request, actor: Caller, ref: Ref) -> Json:
    """Begin to take a profile of running tasks; read the profile again until its state is `done` or `failed`."""
    asked: TakeBody = read_json(await request.body(), TakeBody)
    taken = await service_of(request).profiles.take(
        actor, ref, _enter(request), what=asked.what, seconds=asked.seconds, tasks=asked.tasks
    )
    return Json(taken, 202)


@router.get("/profiles", responses=answers(ProfileList))
async def list_profiles(
    request: Request,
    actor: Caller,
    job: Annotated[str, Query(max_length=200, description="A job; else the profiles of all the caller's jobs.")] = "",
) -> Json:
    """List the newest 200 profiles that are kept, newest first."""
    return Json(await service_of(request).profiles.kept(actor, job=job))


@router.get("/profiles/{profile}", responses=answers(ProfileView))
async def read_profile(request: Request, actor: Caller, profile: _Id) -> Json:
    """Read what is known of a profile, also while it is being taken."""
    return Json(await service_of(request).profiles.profile(actor, profile))


@router.get("/profiles/{profile}/report", responses=answers(ProfileReport, also=(409,)))
async def read_profile_report(request: Request, actor: Caller, profile: _Id) -> Json:
    """Read what a profile shows: stacks, functions and flame graph, or times, timelines and advice."""
    return Json(await service_of(request).profiles.report(actor, profile))


@router.get("/profiles/{profile}/files/{name}", response_class=Response, responses=_FILE)
async def read_profile_file(
    request: Request,
    actor: Caller,
    profile: _Id,
    name: Annotated[str, Path(max_length=200, description="The name of one of its files.")],
) -> Response:
    """Download a file of a profile: the flame graph as SVG, folded stacks, or the Chrome trace of one process."""
    content = await service_of(request).profiles.file(actor, profile, name)
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(f'{profile}-{name}', safe='')}"}
    return Response(content, media_type="application/octet-stream", headers=headers)


@router.get("/profiles/{profile}/comparison", responses=answers(ProfileComparison, also=(409,)))
async def compare_profiles(
    request: Request,
    actor: Caller,
    profile: _Id,
    before: Annotated[str, Query(min_length=1, max_length=101, description="The profile to compare with.")],
) -> Json:
    """Compare a profile with another one of its kind: by the shares of the time."""
    return Json(await service_of(request).profiles.compare(actor, before, profile))


@router.delete("/profiles/{profile}", status_code=204, responses=answers(None, 204))
async def remove_profile(request: Request, actor: Caller, profile: _Id) -> Json:
    """Remove a profile and its files."""
    await service_of(request).profiles.remove(actor, profile)
    return no_content()


def _enter(request: Request) -> Enter:
    """What starts a command in a task, through control."""

    @contextlib.asynccontextmanager
    async def enter(attempt: AttemptId, command: tuple[str, ...]) -> AsyncIterator[TaskStream]:
        query = urlencode({"cmd": list(command), "tty": "false"}, doseq=True)
        async with await connect_to_control(request, f"/exec/{quote(attempt, safe='.')}?{query}") as control:
            yield _ControlStream(control)

    return enter


class _ControlStream:
    """A command in a task, as control passes its bytes on."""

    def __init__(self, control: ClientConnection) -> None:
        self._control = control

    async def send(self, data: bytes) -> None:
        """Send input."""
        try:
            for at in range(0, len(data), _PIECE):
                await self._control.send(data[at : at + _PIECE])
        except ConnectionClosed:
            raise Unavailable("exec-ended", "The command in the task has ended.") from None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for frame in self._control:
                if isinstance(frame, bytes):
                    yield frame
        except ConnectionClosed:
            raise Unavailable("exec-broken", "The connection into the task broke.") from None
