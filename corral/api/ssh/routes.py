"""The API's routes of SSH: sign a key for a few minutes, and carry the bytes of a connection over a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any, Final

import msgspec
from fastapi import Request, WebSocket
from starlette.websockets import WebSocketDisconnect

from corral.api.authentication import Caller, current_actor, service_of
from corral.api.exec import close_refused, refuse
from corral.api.json_responses import Json, answers, json_body, read_json
from corral.api.parameters import Index, Ref, Role
from corral.api.rate_limits import CallLimit
from corral.api.routers import router_of
from corral.api.stream_limits import streams_of
from corral.kernel.errors import CorralError
from corral.model.views import SshAccessView
from corral.service.jobs.ssh_access import asyncssh_library

router = router_of("ssh")

CONNECTIONS_A_MINUTE: Final = 120
"""SSH connections that one user may begin in a minute."""
_LAST_WORD_SECONDS: Final = 5.0


class PublicKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A public key that is to be signed, without a comment."""

    public_key: Annotated[str, msgspec.Meta(min_length=20, max_length=200)]


@router.post(
    "/jobs/{ref}/tasks/{role}/{index}/ssh",
    responses=answers(SshAccessView, also=(409, 429)),
    openapi_extra=json_body(PublicKey),
)
async def certificate(request: Request, actor: Caller, ref: Ref, role: Role, index: Index) -> Json:
    """Sign an Ed25519 public key of OpenSSH, so that its owner may enter a running task by SSH within five minutes."""
    asked: PublicKey = read_json(await request.body(), PublicKey)
    limit: CallLimit = request.app.state.ssh_connections
    limit.take(f"key:{actor.user}", "keys for SSH")
    await asyncio.to_thread(asyncssh_library)
    return Json(await service_of(request).ssh_access.certificate(actor, ref, role, index, asked.public_key))


@router.websocket("/jobs/{ref}/tasks/{role}/{index}/ssh")
async def ssh(socket: WebSocket, ref: Ref, role: Role, index: Index) -> None:
    """Serve SSH into a running task; binary frames are the bytes of one connection."""
    with contextlib.ExitStack() as held:
        try:
            actor = await current_actor(socket)
            limit: CallLimit = socket.app.state.ssh_connections
            limit.take(actor.user, "connections by SSH")
            held.enter_context(streams_of(socket).open("exec", actor.user))
            served = await asyncio.to_thread(_served)
            entered = await service_of(socket).ssh_access.enter(actor, ref, role, index)
        except CorralError as error:
            await refuse(socket, error)
            return
        await socket.accept()
        try:
            async with service_of(socket).context.streams.held(actor):
                await served(socket, actor, entered).serve()
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await socket.send_json({"exit": 0})
                await socket.close()
        except CorralError as error:
            with contextlib.suppress(RuntimeError, TimeoutError, WebSocketDisconnect):
                async with asyncio.timeout(_LAST_WORD_SECONDS):
                    await close_refused(socket, error)


def _served() -> Any:
    """The class that serves connections, loaded when it is first needed.

    Raises Conflict `no-ssh` where the server was installed without SSH.
    """
    asyncssh_library()
    from corral.api.ssh.connection import Connection

    return Connection
