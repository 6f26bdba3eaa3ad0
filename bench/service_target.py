"""A small HTTP/1.1 server of the standard library and uvloop, which `bench.service_proxy` runs as a task of a job.

`/small` is an answer of 1 kB, `/large` one of 64 MiB. Connections are kept.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final, cast

import uvloop

SMALL: Final = b"x" * 1024
LARGE: Final = 64 * 1024 * 1024
_PIECE: Final = b"x" * (1024 * 1024)


class _Connection(asyncio.Protocol):
    """Answers whole requests without a body; a large answer waits while its reader is slow."""

    def __init__(self) -> None:
        self._read = b""
        self._writable = asyncio.Event()
        self._writable.set()
        self._large: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._large is not None:
            self._large.cancel()

    def data_received(self, data: bytes) -> None:
        self._read += data
        while b"\r\n\r\n" in self._read:
            head, _, self._read = self._read.partition(b"\r\n\r\n")
            if head.split(b" ", 2)[1] == b"/large":
                self._large = asyncio.create_task(self._send_large())
            else:
                self._transport.write(_head(len(SMALL)) + SMALL)

    async def _send_large(self) -> None:
        self._transport.write(_head(LARGE))
        for _ in range(LARGE // len(_PIECE)):
            await self._writable.wait()
            self._transport.write(_PIECE)


def _head(length: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n" % length


async def _serve() -> None:
    port = int(os.environ["CORRAL_PORT_WEB"])
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
