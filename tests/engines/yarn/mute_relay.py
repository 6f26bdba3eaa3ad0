"""A relay before a daemon that can be made mute: it goes on to take calls, and passes nothing on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit


class MuteRelay:
    """Passes connections on to a daemon, unless it is mute; what came meanwhile is passed on after."""

    def __init__(self, daemon: str) -> None:
        """`daemon` is the URL of the daemon."""
        parts = urlsplit(daemon)
        self._to = (parts.hostname or "", parts.port or 0)
        self._speaks = asyncio.Event()
        self._speaks.set()
        self.url = ""

    def mute(self) -> None:
        """Pass nothing on from now on."""
        self._speaks.clear()

    def speak(self) -> None:
        """Pass on again."""
        self._speaks.set()

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        await self._speaks.wait()
        with contextlib.suppress(OSError):
            onward, back = await asyncio.open_connection(*self._to)
            await asyncio.gather(self._pass_on(reader, back), self._pass_on(onward, writer))
        writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(65536):
                await self._speaks.wait()
                writer.write(piece)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def relay_to(daemon: str) -> AsyncIterator[MuteRelay]:
    """A relay before a daemon."""
    made = MuteRelay(daemon)
    server = await asyncio.start_server(made.relay, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        made.speak()
        server.close()
