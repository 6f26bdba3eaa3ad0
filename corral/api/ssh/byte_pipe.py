"""Carry the bytes of an SSH connection over a WebSocket: the transport that the library of SSH writes to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

from starlette.websockets import WebSocketDisconnect

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

_MOST_UNSENT: Final = 512 * 1024
"""Bytes that may wait for the client to take them, before nothing more is read or written for it."""
_PIECE: Final = 128 * 1024
_FED: Final = 64 * 1024
"""Bytes that are decoded before others of the server have a turn."""


class Receiver(Protocol):
    """The end that decodes SSH."""

    def data_received(self, data: bytes) -> None:
        """Take the next bytes of the client."""
        ...

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the client has gone."""
        ...


class BytePipe:
    """Has the methods of an asyncio transport, and bounds what waits to be sent."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._unsent = bytearray()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._ended = False

    # -- for the library

    def write(self, data: bytes) -> None:
        """Send bytes to the client, after those before."""
        if self._ended:
            return
        self._unsent += data
        if len(self._unsent) > _MOST_UNSENT:
            self._room.clear()
        self._news.set()

    def close(self) -> None:
        """Send what was written, then end the connection."""
        self._ended = True
        self._news.set()
        self._room.set()

    def abort(self) -> None:
        """End the connection; what was written before is still sent, since it may say why."""
        self.close()

    def is_closing(self) -> bool:
        """Whether the connection ends."""
        return self._ended

    def get_extra_info(self, _: str, default: Any = None) -> Any:
        """Nothing is known of a client beside its sign-in."""
        return default

    # -- for the server

    async def room(self) -> None:
        """Wait until the client has taken most of what was sent."""
        await self._room.wait()

    async def carry(self, receiver: Receiver) -> None:
        """Pass bytes both ways until the connection ends."""
        inwards = asyncio.create_task(self._inwards(receiver))
        outwards = asyncio.create_task(self._outwards())
        try:
            await asyncio.wait({inwards, outwards}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.close()
            for task in (inwards, outwards):
                task.cancel()
            ended = await asyncio.gather(inwards, outwards, return_exceptions=True)
            receiver.connection_lost(None)
        for end in ended:
            if isinstance(end, Exception):
                raise end

    async def _inwards(self, receiver: Receiver) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            data = message.get("bytes")
            if data is None:  # a frame of text says that the client sends no more
                return
            for begin in range(0, len(data), _FED):
                await self._room.wait()
                receiver.data_received(data[begin : begin + _FED])
                await asyncio.sleep(0)

    async def _outwards(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._unsent:
                piece = bytes(self._unsent[:_PIECE])
                del self._unsent[:_PIECE]
                try:
                    await self._socket.send_bytes(piece)
                except (RuntimeError, WebSocketDisconnect):  # the client has gone
                    return
                if len(self._unsent) <= _MOST_UNSENT:
                    self._room.set()
            if self._ended:
                return
