"""WebSocket routes for commands in a task and connections to its ports, passed on to control.

Control serves a WebSocket at `/exec/ATTEMPT?cmd=…&tty=…`. Binary frames are the terminal's bytes. Text frames are JSON:
`{"resize": [rows, columns]}` inwards, `{"exit": code}` outwards.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Final
from urllib.parse import quote, urlencode

from fastapi import Query, Request, WebSocket
from starlette.requests import HTTPConnection
from starlette.websockets import WebSocketDisconnect
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from corral.api.authentication import Caller, current_actor, service_of
from corral.api.json_responses import Json, answers
from corral.api.parameters import Index, Ref, Role
from corral.api.routers import router_of
from corral.api.stream_limits import streams_of
from corral.kernel.errors import CorralError, InvalidInput, Unauthenticated, Unavailable
from corral.model.views import PortsView
from corral.service.actor import Actor
from corral.service.watched_socket import until_left

router = router_of("exec")

PortName = Annotated[str, Query(max_length=100, description="The name or the number of one of the task's ports.")]
_REFUSED: Final = 4000
"""Base of the WebSocket close codes of refusals: 4000 + the HTTP status of the same refusal."""
_LAST_WORD_SECONDS: Final = 5.0
"""Seconds that a client has to read the reason for its connection's end."""


@router.websocket("/jobs/{ref}/tasks/{role}/{index}/exec")
async def exec_(
    socket: WebSocket,
    ref: Ref,
    role: Role,
    index: Index,
    cmd: Annotated[list[str], Query(max_length=1000)] = [],  # noqa: B006
    tty: bool = False,
) -> None:
    """Run a command in a running task."""
    with contextlib.ExitStack() as held:
        try:
            actor = await current_actor(socket)
            _check_words(cmd)
            held.enter_context(streams_of(socket).open("exec", actor.user))
            attempt = await service_of(socket).task_connections.open_exec(actor, ref, role, index)
            query = urlencode({"cmd": cmd or ["sh"], "tty": str(tty).lower()}, doseq=True)
            control = await connect_to_control(socket, f"/exec/{quote(attempt, safe='.')}?{query}")
        except CorralError as error:
            await refuse(socket, error)
            return
        await _held(socket, actor, control)


@router.websocket("/jobs/{ref}/tasks/{role}/{index}/forward")
async def forward(socket: WebSocket, ref: Ref, role: Role, index: Index, port: PortName) -> None:
    """Forward a TCP connection to a port of a running task; binary frames are its bytes."""
    with contextlib.ExitStack() as held:
        try:
            actor = await current_actor(socket)
            held.enter_context(streams_of(socket).open("forward", actor.user))
            attempt, number = await service_of(socket).task_connections.open_port(actor, ref, role, index, port)
            control = await connect_to_control(socket, f"/forward/{quote(attempt, safe='.')}?port={number}")
        except CorralError as error:
            await refuse(socket, error)
            return
        await _held(socket, actor, control)


@router.get("/jobs/{ref}/tasks/{role}/{index}/ports", responses=answers(PortsView, also=(409,)))
async def ports(request: Request, actor: Caller, ref: Ref, role: Role, index: Index) -> Json:
    """List the ports of a running task, with the path of a notebook behind one of them."""
    return Json(await service_of(request).task_connections.ports(actor, ref, role, index))


def _check_words(words: list[str]) -> None:
    """Raise InvalidInput for a command that no system can start."""
    if any("\0" in word for word in words):
        raise InvalidInput("invalid-command", "A word of the command has a NUL character; leave it out.")


async def connect_to_control(socket: HTTPConnection, path: str) -> ClientConnection:
    """Open a WebSocket to control at `path`.

    Raises Unavailable.
    """
    try:
        connected: ClientConnection = await socket.app.state.connect(path)
        return connected
    except InvalidStatus as error:
        status = error.response.status_code
        raise Unavailable("exec-refused", f"The task cannot be entered: control answered {status}.") from None
    except (OSError, TimeoutError, WebSocketException):
        raise Unavailable("no-control", "Control does not answer, so tasks cannot be entered; try again.") from None


async def _held(socket: WebSocket, actor: Actor, control: ClientConnection) -> None:
    """Relay frames until either side ends, or the caller's token or account does."""
    try:
        async with control, service_of(socket).context.streams.held(actor):
            await socket.accept()
            await _join(socket, control)
    except Unauthenticated as error:
        with contextlib.suppress(RuntimeError, TimeoutError, WebSocketDisconnect):
            async with asyncio.timeout(_LAST_WORD_SECONDS):
                await close_refused(socket, error)


async def refuse(socket: WebSocket, error: CorralError) -> None:
    """Accept the handshake, then close with the reason: browsers do not show the reason of a refused handshake."""
    await socket.accept()
    await close_refused(socket, error)


async def close_refused(socket: WebSocket, error: CorralError) -> None:
    """Close an accepted WebSocket with the reason."""
    await socket.send_json({"error": {"code": error.code, "message": error.message, "status": error.status}})
    await socket.close(_REFUSED + error.status, error.message.encode()[:120].decode(errors="ignore"))


async def _join(socket: WebSocket, control: ClientConnection) -> None:
    """Pass frames both ways until either side ends."""

    async def inwards() -> None:
        with contextlib.suppress(WebSocketDisconnect, ConnectionClosed):
            while True:
                message = await socket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                data = message.get("bytes")
                await control.send(data if data is not None else message.get("text", ""))

    async def outwards() -> None:
        with contextlib.suppress(WebSocketDisconnect, ConnectionClosed):
            async for frame in control:
                if isinstance(frame, bytes):
                    await socket.send_bytes(frame)
                else:
                    await socket.send_text(frame)

    reader = asyncio.create_task(inwards())
    tasks = {reader, asyncio.create_task(outwards()), asyncio.create_task(until_left(socket.scope, reader))}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not reader.done():  # a close frame would wait behind input that control does not take
            control.transport.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        await socket.close()
