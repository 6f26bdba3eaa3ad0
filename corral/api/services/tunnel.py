"""A byte stream to a port of a task, which may rest between two requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Final
from urllib.parse import quote

from starlette.requests import HTTPConnection

from corral.api.exec import connect_to_control
from corral.api.services.task_streams import OnThisMachine, TaskStream, ThroughControl, unreachable
from corral.kernel.errors import CorralError, Unavailable
from corral.kernel.ids import AttemptId

_CLOSE_SECONDS: Final = 1.0


class Tunnel:
    """The stream; at most a few pieces wait in memory in each direction."""

    def __init__(self, stream: TaskStream) -> None:
        self._stream = stream
        self._early: asyncio.Task[bytes] | None = None
        """Receives what the task says while nothing is under way."""

    @classmethod
    async def open(cls, asked: HTTPConnection, attempt: AttemptId, port: int) -> Tunnel:
        """Open a stream to the port of an attempt: straight where the task listens on this machine.

        Raises Unavailable.
        """
        try:
            is_here = await asked.app.state.is_here(attempt, port)
        except Unavailable:
            raise
        except CorralError as error:
            raise unreachable(error.message) from None
        if is_here:
            return cls(await OnThisMachine.open(port))
        return cls(ThroughControl(await connect_to_control(asked, f"/forward/{quote(attempt, safe='.')}?port={port}")))

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
                        await self._stream.close()
        finally:
            self.cut()

    def cut(self) -> None:
        """Cut the stream, whatever waits on it."""
        if self._early is not None:
            self._early.cancel()
        self._stream.abort()

    def rest(self, spoken: Callable[[], None]) -> None:
        """Let the stream rest between two requests; `spoken` is called once the task says or ends anything."""
        if isinstance(self._stream, OnThisMachine):
            self._stream.rest(spoken)
            return

        def ended(early: asyncio.Task[bytes]) -> None:
            if not early.cancelled():
                early.exception()  # asyncio complains of one that is never asked for
                spoken()

        self._early = asyncio.create_task(self._stream.receive())
        self._early.add_done_callback(ended)

    @property
    def is_quiet(self) -> bool:
        """Whether the task has said and ended nothing since the stream rests."""
        if isinstance(self._stream, OnThisMachine):
            return self._stream.is_quiet
        return self._early is not None and not self._early.done()

    async def send(self, data: bytes) -> None:
        """Send bytes to the task; those for a stream that has ended are dropped, because `receive` tells the end."""
        await self._stream.send(data)

    async def end(self) -> None:
        """End what is sent to the task."""
        await self._stream.end()

    async def receive(self) -> bytes:
        """The next bytes of the task; b"" at the end.

        Raises Unavailable, in the engine's words, if the port of the task cannot be reached.
        """
        if self._early is not None:
            early, self._early = self._early, None
            return await early
        return await self._stream.receive()
