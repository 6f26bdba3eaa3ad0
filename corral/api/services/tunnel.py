"""A byte stream to a port of a task, which control opens on whatever engine the task runs."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec
from starlette.requests import HTTPConnection
from websockets.exceptions import ConnectionClosed

from corral.api.exec import connect_to_control
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_PIECE: Final = 64 * 1024
_CLOSE_SECONDS: Final = 1.0
_LONGEST: Final = 500
"""Characters of an engine's message that are shown."""


class _Refusal(msgspec.Struct):
    message: str


class _Words(msgspec.Struct):
    """The part of control's text frames that is read."""

    error: _Refusal | None = None


class Tunnel:
    """The stream; at most a few pieces wait in memory in each direction."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, asked: HTTPConnection, attempt: AttemptId, port: int) -> Tunnel:
        """Open a stream to the port of an attempt.

        Raises Unavailable.
        """
        return cls(await connect_to_control(asked, f"/forward/{quote(attempt, safe='.')}?port={port}"))

    async def __aenter__(self) -> Tunnel:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the stream: at once after an error, and soon where the task has more to say than was read."""
        try:
            if kind is None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_CLOSE_SECONDS):
                        await self._connection.close()
        finally:
            self.cut()

    def cut(self) -> None:
        """Cut the stream, whatever waits on it."""
        self._connection.transport.abort()

    async def send(self, data: bytes) -> None:
        """Send bytes to the task; those for a stream that has ended are dropped, because `receive` tells the end."""
        try:
            for begin in range(0, len(data), _PIECE):
                await self._connection.send(data[begin : begin + _PIECE])
        except ConnectionClosed:
            return

    async def end(self) -> None:
        """End what is sent to the task."""
        with contextlib.suppress(ConnectionClosed):
            await self._connection.send('{"eof": true}')

    async def receive(self) -> bytes:
        """The next bytes of the task; b"" at the end.

        Raises Unavailable, in the engine's words, if the port of the task cannot be reached.
        """
        try:
            frame = await self._connection.recv()
        except ConnectionClosed:
            return b""
        if isinstance(frame, bytes):
            return frame
        told = msgspec.json.decode(frame, type=_Words).error
        if told is not None:
            raise Unavailable("service-not-there", told.message[:_LONGEST])
        return b""
