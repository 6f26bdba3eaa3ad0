"""Sessions beside attempts: the slot sends output in frames and reads input as lines; neither end waits for the other."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from collections.abc import AsyncIterator
from typing import Any, Final

from corral.kernel.errors import NotFound, Unavailable

_MOST_FRAME: Final = 1024 * 1024
_MOST_QUEUED: Final = 64
"""Frames of output that wait for a reader; the slot is read no further until it has taken some."""
LOST: Final = 255
"""The exit code of a session whose slot is gone."""


class SlotSession:
    """One session: the engine's `ExecSession`, and the two streams of its slot."""

    def __init__(self, identifier: str, container: str) -> None:
        self.id, self.container = identifier, container
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
        """Yield the command's output until it ends."""
        while (data := await self._output.get()) is not None:
            yield data

    async def exit_code(self) -> int:
        """Wait for the command to end and return its exit code."""
        return await asyncio.shield(self._code)

    async def close(self) -> None:
        """End the command if it still runs."""
        if not self._code.done():
            await self._say({"close": True})

    # ---- for the slot

    async def take_output(self, pieces: AsyncIterator[bytes]) -> None:
        """Read the slot's frames to their end."""
        buffer = bytearray()
        async for piece in pieces:
            buffer += piece
            while len(buffer) >= 5:
                size = struct.unpack(">I", buffer[1:5])[0]
                if size > _MOST_FRAME:
                    raise Unavailable("bad-frame", "A slot sent a frame that is too large.")
                if len(buffer) < 5 + size:
                    break
                kind, content = bytes(buffer[:1]), bytes(buffer[5 : 5 + size])
                del buffer[: 5 + size]
                if kind == b"o":
                    await self._output.put(content)
                elif kind == b"x" and not self._code.done():
                    self._code.set_result(int(content))
        self.end()

    async def input_lines(self) -> AsyncIterator[bytes]:
        """Yield the lines for the slot until the session ends."""
        while (line := await self._input.get()) is not None:
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


class Sessions:
    """The sessions that are open."""

    def __init__(self) -> None:
        self._open: dict[str, SlotSession] = {}

    def open(self, identifier: str, container: str) -> SlotSession:
        """Open a session in a container."""
        session = self._open[identifier] = SlotSession(identifier, container)
        session._code.add_done_callback(lambda _: self._open.pop(identifier, None) and None)
        return session

    def get(self, identifier: str, container: str) -> SlotSession:
        """The session of a container's slot. Raises NotFound."""
        session = self._open.get(identifier)
        if session is None or session.container != container:
            raise NotFound("no-session", "This slot has no such session.")
        return session

    def end(self, container: str) -> None:
        """End all sessions of a container that is gone."""
        for session in [each for each in self._open.values() if each.container == container]:
            session.end()
