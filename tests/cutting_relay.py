"""A relay on loopback that breaks uploads off after a chosen number of bytes."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit


class CuttingRelay:
    """Passes connections on to a server; each PATCH is cut after the next of `cuts` bytes."""

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self._to = (parts.hostname or "", parts.port or 0)
        self.cuts: list[int] = []
        self.arrived: Callable[[], bool] = lambda: True
        """Whether a cut may come: bytes that a server has not read when it learns of the cut are lost."""
        self.url = ""
        self._loop: asyncio.AbstractEventLoop
        self._ended: asyncio.Event

    async def serve(self, ready: threading.Event) -> None:
        """Listen until `end`."""
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        listener = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        ready.set()
        await self._ended.wait()
        listener.close()

    def end(self) -> None:
        """Stop to listen, from another thread."""
        self._loop.call_soon_threadsafe(self._ended.set)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward, back = await asyncio.open_connection(*self._to)
        answers = asyncio.create_task(_pass_on(onward, writer))
        left: int | None = None
        with contextlib.suppress(ConnectionError):
            while left != 0 and (piece := await reader.read(65536)):
                if left is None and piece.startswith(b"PATCH") and self.cuts:
                    left = self.cuts.pop(0)
                piece = piece[:left]
                left = None if left is None else left - len(piece)
                back.write(piece)
                await back.drain()
        while left == 0 and not self.arrived():
            await asyncio.sleep(0.02)
        for each in (back, writer):
            each.close()
        await answers


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


@contextlib.contextmanager
def cutting(server: str) -> Iterator[CuttingRelay]:
    """A relay to the server in a thread of its own."""
    relay, ready = CuttingRelay(server), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(relay.serve(ready)))
    thread.start()
    assert ready.wait(60)
    try:
        yield relay
    finally:
        relay.end()
        thread.join()
