"""WebSocket streams for commands in tasks and connections to their ports; the library is imported on first use."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Final

from corral.client.calls import raise_for
from corral.kernel.errors import Unavailable

if TYPE_CHECKING:
    from types import TracebackType

_PIECE: Final = 64 * 1024
"""Bytes of input in one message; the server accepts up to 256 KiB."""


_CLOSE_SECONDS: Final = 2.0
"""Seconds for the end of a connection: the server may leave unread what was sent before."""


class ExecStream:
    """A command in a running task: iterate over its output, `send` its input; afterwards, `exit_code` is set."""

    def __init__(self, url: str, token: str, *, ca: str = "") -> None:
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect

        from corral.client.websocket_keepalive import PING_SECONDS, PatientConnection

        target = "ws" + url.removeprefix("http")
        context = ssl.create_default_context(cafile=ca or None) if target.startswith("wss") else None
        try:
            self._entered = connect(
                target,
                additional_headers={"Authorization": f"Bearer {token}"},
                ssl=context,
                compression=None,
                proxy=None,
                max_size=None,
                ping_interval=PING_SECONDS,
                create_connection=PatientConnection,
            )
            self._socket = self._entered.__enter__()
        except (OSError, TimeoutError, WebSocketException) as error:
            raise Unavailable("unreachable", f"The task cannot be entered: {error}.") from None
        self.exit_code: int | None = None

    def __enter__(self) -> ExecStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, data: bytes) -> None:
        """Send input to the command."""
        for piece in _pieces(data):
            self._write(piece)

    def end_input(self) -> None:
        """Close the command's input."""
        self._write(json.dumps({"eof": True}))

    def resize(self, rows: int, columns: int) -> None:
        """Set the size of the command's terminal."""
        self._write(json.dumps({"resize": [rows, columns]}))

    def _write(self, frame: str | bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            self._socket.send(frame)
        except ConnectionClosed:
            raise Unavailable("exec-ended", "The command in the task has ended.") from None

    def __iter__(self) -> Iterator[bytes]:
        from websockets.exceptions import ConnectionClosed

        while True:
            try:
                frame = self._socket.recv()
            except ConnectionClosed as closed:
                if self.exit_code is None:
                    raise Unavailable("exec-broken", "The connection into the task broke; try again.") from closed
                return
            if isinstance(frame, bytes):
                yield frame
            else:
                self._control(json.loads(frame))

    def close(self) -> None:
        """Close the connection, which ends the command."""
        if self.exit_code is None:  # another thread may be sending what the server leaves unread
            with contextlib.suppress(OSError):
                self._socket.socket.shutdown(socket.SHUT_RDWR)
        self._entered.__exit__(None, None, None)

    def _control(self, message: dict[str, object]) -> None:
        if "exit" in message:
            self.exit_code = int(str(message["exit"]))
        elif isinstance(error := message.get("error"), dict):
            raise_for(int(error.get("status", 503)), json.dumps(error).encode())


class AsyncExecStream:
    """The same for async programs: an async context manager, iterated over with `async for`."""

    def __init__(self, url: str, token: str, trust: ssl.SSLContext | bool) -> None:
        from websockets.asyncio.client import connect

        from corral.client.websocket_keepalive import PING_SECONDS, AsyncPatientConnection

        target = "ws" + url.removeprefix("http")
        context = trust if isinstance(trust, ssl.SSLContext) else None
        self._connecting = connect(
            target,
            additional_headers={"Authorization": f"Bearer {token}"},
            ssl=context if context or not target.startswith("wss") else ssl.create_default_context(),
            compression=None,
            proxy=None,
            max_size=None,
            ping_interval=PING_SECONDS,
            create_connection=AsyncPatientConnection,
        )
        self.exit_code: int | None = None

    async def __aenter__(self) -> AsyncExecStream:
        from websockets.exceptions import WebSocketException

        try:
            self._socket = await self._connecting
        except (OSError, TimeoutError, WebSocketException) as error:
            raise Unavailable("unreachable", f"The task cannot be entered: {error}.") from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._socket.close()
        except TimeoutError:
            self._socket.transport.abort()

    async def send(self, data: bytes) -> None:
        """Send input to the command."""
        for piece in _pieces(data):
            await self._socket.send(piece)

    async def end_input(self) -> None:
        """Close the command's input."""
        await self._socket.send(json.dumps({"eof": True}))

    async def resize(self, rows: int, columns: int) -> None:
        """Set the size of the command's terminal."""
        await self._socket.send(json.dumps({"resize": [rows, columns]}))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        from websockets.exceptions import ConnectionClosed

        while True:
            try:
                frame = await self._socket.recv()
            except ConnectionClosed as closed:
                if self.exit_code is None:
                    raise Unavailable("exec-broken", "The connection into the task broke; try again.") from closed
                return
            if isinstance(frame, bytes):
                yield frame
                continue
            message = json.loads(frame)
            if "exit" in message:
                self.exit_code = int(message["exit"])
            elif isinstance(refused := message.get("error"), dict):
                raise_for(int(refused.get("status", 503)), json.dumps(refused).encode())


def _pieces(data: bytes) -> Iterator[bytes]:
    """Split input into messages; empty input is one empty message."""
    for begin in range(0, max(1, len(data)), _PIECE):
        yield data[begin : begin + _PIECE]
