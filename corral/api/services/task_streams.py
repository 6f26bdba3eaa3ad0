"""The two ways to a port of a task: through control on whatever engine it runs, and straight on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, cast

import msgspec
from websockets.exceptions import ConnectionClosed

from corral.kernel.errors import Unavailable, port_closed

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_PIECE: Final = 64 * 1024
_MOST_PIECES: Final = 3
"""Pieces of a task on this machine that wait to be taken before no more are read."""
_CONNECT_SECONDS: Final = 10.0
_LONGEST: Final = 500
"""Characters of an engine's message that are shown."""


class TaskStream(Protocol):
    """A byte stream to a port of a task; at most a few pieces wait in memory in each direction."""

    async def send(self, data: bytes) -> None:
        """Send bytes to the task; those for a stream that has ended are dropped, because `receive` tells the end."""
        ...

    async def end(self) -> None:
        """End what is sent to the task."""
        ...

    async def receive(self) -> bytes:
        """The next bytes of the task; b"" at the end.

        Raises Unavailable, in the engine's words, if the port of the task cannot be reached.
        """
        ...

    async def close(self) -> None:
        """Close the stream, and wait until what was sent has left."""
        ...

    def abort(self) -> None:
        """Cut the stream, whatever waits on it."""
        ...


class _Refusal(msgspec.Struct):
    message: str


class _Words(msgspec.Struct):
    """The part of control's text frames that is read."""

    error: _Refusal | None = None


class ThroughControl:
    """A stream that control opened on the task's engine: a WebSocket, whose binary frames are the bytes."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send(self, data: bytes) -> None:
        """Send bytes in pieces."""
        try:
            for begin in range(0, len(data), _PIECE):
                await self._connection.send(data[begin : begin + _PIECE])
        except ConnectionClosed:
            return

    async def end(self) -> None:
        """Tell control to end the sending side."""
        with contextlib.suppress(ConnectionClosed):
            await self._connection.send('{"eof": true}')

    async def receive(self) -> bytes:
        """The next frame.

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
            raise unreachable(told.message)
        return b""

    async def close(self) -> None:
        """Close the WebSocket."""
        await self._connection.close()

    def abort(self) -> None:
        """Cut it."""
        self._connection.transport.abort()


class OnThisMachine(asyncio.BufferedProtocol):
    """A TCP connection to a task that listens on the loopback of this machine.

    Small answers come by the hundred, so it is a protocol of its own: a stream that rests has no task that reads it.
    """

    _transport: asyncio.Transport

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._buffer = memoryview(bytearray(_PIECE))
        self._pieces: deque[bytes] = deque()
        self._is_over = False
        self._is_held = False
        """Whether reading pauses, because what was read was not taken."""
        self._reader: asyncio.Future[None] | None = None
        self._writable: asyncio.Event | None = None
        """Set while there is room for what is sent; None before it was needed."""
        self._closed: asyncio.Future[None] = loop.create_future()
        self._spoken: Callable[[], None] | None = None

    @classmethod
    async def open(cls, port: int) -> OnThisMachine:
        """Connect.

        Raises Unavailable when nothing listens there, or does not answer in ten seconds.
        """
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, made = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
                return made
        except TimeoutError:
            raise unreachable(f"Port {port} of the task did not answer in {_CONNECT_SECONDS:g} seconds.") from None
        except OSError as error:  # asyncio names the address in its own words
            why = os.strerror(error.errno or errno.ECONNREFUSED)
            raise unreachable(port_closed(port, why).message) from None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next piece is read to: large ones cost more to allocate than to copy."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Keep what was read until it is taken, and read no more beyond a bound."""
        self._pieces.append(bytes(self._buffer[:nbytes]))
        if len(self._pieces) >= _MOST_PIECES and not self._is_held:
            self._is_held = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """End what is read; the task may still be sent to."""
        self._is_over = True
        self._wake()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """End both directions."""
        self._is_over = True
        self._wake()
        self.resume_writing()
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        """Let those wait that send."""
        self._writable = self._writable or asyncio.Event()
        self._writable.clear()

    def resume_writing(self) -> None:
        """Wake those that send."""
        if self._writable is not None:
            self._writable.set()

    def rest(self, spoken: Callable[[], None]) -> None:
        """Call `spoken` once the task says or ends anything; nothing is under way now."""
        self._spoken = spoken
        if not self.is_quiet:
            asyncio.get_running_loop().call_soon(self._wake)

    @property
    def is_quiet(self) -> bool:
        """Whether the task has said nothing that was not taken, and has ended nothing."""
        return not self._pieces and not self._is_over

    async def send(self, data: bytes) -> None:
        """Send bytes, and wait while many are on their way."""
        if self._transport.is_closing():
            return
        self._transport.write(data)
        if self._writable is not None:
            await self._writable.wait()

    async def end(self) -> None:
        """End the sending side."""
        if not self._transport.is_closing():
            with contextlib.suppress(OSError):
                self._transport.write_eof()

    async def receive(self) -> bytes:
        """The next bytes."""
        self._spoken = None
        while not self._pieces:
            if self._is_over:
                return b""
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        data = self._pieces.popleft()
        if self._is_held and not self._pieces:
            self._is_held = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return data

    async def close(self) -> None:
        """Close the connection."""
        self._transport.close()
        await asyncio.shield(self._closed)

    def abort(self) -> None:
        """Cut it."""
        self._transport.abort()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
        spoken, self._spoken = self._spoken, None
        if spoken is not None:
            spoken()


def unreachable(message: str) -> Unavailable:
    """The refusal of a port that cannot be reached, in the engine's words."""
    return Unavailable("service-not-there", message[:_LONGEST])
