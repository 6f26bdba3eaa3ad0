"""Relay a session in a task, a command or a connection to a port, to the WebSocket of its caller."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Annotated, Final

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from corral.engines.base import ExecSession
from corral.kernel.errors import Unavailable
from corral.service.interruption import unless
from corral.service.watched_socket import until_left

_NORMAL_END: Final = 1000
_Cells = Annotated[int, msgspec.Meta(ge=0, le=65535)]
"""Rows or columns of a terminal."""
_MISUNDERSTOOD: Final = json.dumps(
    {"error": {"code": "bad-frame", "message": 'A text frame is {"resize": [ROWS, COLUMNS]} or {"eof": true}.'}}
)


class _Asked(msgspec.Struct):
    """The request in a caller's text frame."""

    resize: tuple[_Cells, _Cells] | None = None
    eof: bool = False


async def carry(socket: WebSocket, session: ExecSession) -> None:
    """Connect a WebSocket and a session until either ends: binary frames are data, text frames are JSON.

    The loss of the connection ends the session, too, while its command leaves the caller's input unread.
    """
    reader = asyncio.create_task(_from_caller(socket, session))
    try:
        await unless(until_left(socket.scope, reader), WebSocketDisconnect, _to_caller(socket, session))
    except WebSocketDisconnect:
        pass
    finally:
        reader.cancel()
        await session.close()


async def _to_caller(socket: WebSocket, session: ExecSession) -> None:
    async for chunk in session.output():
        await socket.send_bytes(chunk)
    await socket.send_text(json.dumps({"exit": await session.exit_code()}))
    await socket.close(_NORMAL_END)


async def _from_caller(socket: WebSocket, session: ExecSession) -> None:
    """Forward the caller's frames. A disconnect ends the session, even when the command takes no more input."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            await session.close()
            return
        with contextlib.suppress(Unavailable):
            if message.get("bytes") is not None:
                await session.send(message["bytes"])
                continue
            try:
                asked = msgspec.json.decode(message.get("text") or "", type=_Asked)
            except msgspec.DecodeError:
                await socket.send_text(_MISUNDERSTOOD)
                await session.close()
                return
            if asked.resize is not None:
                await session.resize(*asked.resize)
            elif asked.eof:
                await session.send(b"")
