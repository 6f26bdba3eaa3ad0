"""Sessions beside attempts: the slot sends output frame by frame, and reads input as lines of one long answer."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from corral.kernel.errors import InvalidInput, NotFound, port_closed

_QUIET_SECONDS: Final = 15.0
"""Seconds without input after which an empty line keeps proxies from cutting the answer."""
_MOST_QUEUED: Final = 64
"""Frames of output that wait for a reader; the slot is read no further until it has taken some."""
LOST: Final = 255
"""The exit code of a session whose slot is gone."""


class SlotSession:
    """One session: the engine's `ExecSession`, and the two streams of its slot."""

    def __init__(self, identifier: str, slot: str, port: int = 0, order_end: Callable[[], None] = lambda: None) -> None:
        """`slot` is the key of the slot that it runs in; `port` that of a connection.

        `order_end` has the slot end it, whatever input is on its way there.
        """
        self._order_end = order_end
        self.id, self.slot, self._port = identifier, slot, port
        self._error = 0
        """The system's error with which the port refused the connection."""
        self._is_read = True
        """Whether the client still takes output."""
        self._output: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_QUEUED)
        self._input: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_QUEUED)
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    # ---- for the client

    async def send(self, data: bytes) -> None:
        """Write `data` to the command's standard input; no data closes it."""
        said: dict[str, Any] = {"data": base64.b64encode(data).decode()} if data else {"eof": True}
        await self._say(said)

    async def resize(self, rows: int, columns: int) -> None:
        """Set the size of the command's terminal."""
        await self._say({"resize": [rows, columns]})

    async def output(self) -> AsyncIterator[bytes]:
        """Yield the command's output until it ends.

        Raises Unavailable when nothing listens at the port of a connection.
        """
        while (data := await self._output.get()) is not None:
            yield data
        if self._error:
            raise port_closed(self._port, os.strerror(self._error))

    async def exit_code(self) -> int:
        """Wait for the command to end and return its exit code."""
        return await asyncio.shield(self._code)

    async def close(self) -> None:
        """End the command if it still runs. What it said and nobody took is dropped; the slot waits for nobody."""
        self._is_read = False
        _drain(self._output)
        if not self._code.done():
            if self._input.full():  # it takes no more input
                _drain(self._input)
            await self._say({"close": True})
            self._order_end()

    # ---- for the slot

    async def take_output(self, data: bytes) -> None:
        """Take one or more whole frames from the slot, once the reader has room. Raises InvalidInput."""
        while data:
            kind, size = data[:1], struct.unpack(">I", data[1:5])[0] if len(data) >= 5 else -1
            content, data = data[5 : 5 + size], data[5 + size :]
            if kind == b"o" and len(content) == size:
                if self._is_read:
                    await self._output.put(content)
            elif kind == b"x" and len(content) == size <= 4 and content.isdigit():
                if not self._code.done():
                    self._code.set_result(int(content))
                self.end()
            elif kind == b"r" and self._port and len(content) == size <= 4 and content.isdigit():
                self._error = int(content)
                self.end()
            else:
                raise InvalidInput("bad-frame", "A session's output comes in whole frames.")

    async def input_lines(self) -> AsyncIterator[bytes]:
        """Yield the lines for the slot until the session ends; an empty one when nothing else is to be said."""
        while True:
            try:
                async with asyncio.timeout(_QUIET_SECONDS):
                    line = await self._input.get()
            except TimeoutError:
                line = b"\n"
            if line is None:
                return
            yield line

    def end(self) -> None:
        """End both streams; a session without an exit code gets that of a lost one."""
        if not self._code.done():
            self._code.set_result(LOST)
        for queue in (self._output, self._input):
            if queue.full():  # nobody reads it: the end must come through
                queue.get_nowait()
            queue.put_nowait(None)

    async def _say(self, said: dict[str, Any]) -> None:
        if not self._code.done():
            await self._input.put(json.dumps(said).encode() + b"\n")


def _drain(queue: asyncio.Queue[bytes | None]) -> None:
    while not queue.empty():
        queue.get_nowait()


class Sessions:
    """The sessions that are open."""

    def __init__(self) -> None:
        self._open: dict[str, SlotSession] = {}

    def open(
        self, identifier: str, slot: str, port: int = 0, order_end: Callable[[], None] = lambda: None
    ) -> SlotSession:
        """Open a session in a slot: a connection to a port, or a command."""
        session = self._open[identifier] = SlotSession(identifier, slot, port, order_end)
        session._code.add_done_callback(lambda _: self._open.pop(identifier, None) and None)
        return session

    def get(self, identifier: str, slot: str) -> SlotSession:
        """The session of a slot. Raises NotFound."""
        session = self._open.get(identifier)
        if session is None or session.slot != slot:
            raise NotFound("no-session", "This slot has no such session.")
        return session

    def end(self, slot: str) -> None:
        """End all sessions of a slot that is gone."""
        for session in [each for each in self._open.values() if each.slot == slot]:
            session.end()
