"""Forward connections to a task's port through the server, since tasks listen on loopback only."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Mapping
from typing import Final

from corral.kernel.errors import NotFound, Unavailable, port_closed
from corral.kernel.ids import AttemptId

_PIECE: Final = 64 * 1024


class LocalConnection:
    """A TCP connection to a port of this machine, as an `ExecSession` without a terminal."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._over = asyncio.Event()

    async def send(self, data: bytes) -> None:
        """Send bytes; empty bytes close the sending side. Raises Unavailable when the other side has gone."""
        try:
            if not data:
                self._writer.write_eof()
                return
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise Unavailable("connection-over", f"The task takes no more input: {error.strerror}.") from None

    async def resize(self, rows: int, columns: int) -> None:
        """Do nothing: there is no terminal."""

    async def output(self) -> AsyncIterator[bytes]:
        """Yield the task's data until it closes the connection."""
        try:
            while data := await self._reader.read(_PIECE):
                yield data
        except ConnectionError:
            return
        finally:
            self._over.set()

    async def exit_code(self) -> int:
        """Wait for the connection to end and return 0."""
        await self._over.wait()
        return 0

    async def close(self) -> None:
        """Close the connection."""
        self._over.set()
        self._writer.close()


def check_given(attempt: AttemptId, port: int, given: Mapping[str, tuple[int, ...]]) -> None:
    """Check that a port is among those of an attempt: other ports of this machine are not allowed.

    Raises NotFound.
    """
    if not any(port in numbers for numbers in given.values()):
        raise NotFound("no-such-port", f"{attempt} was not given port {port}.")


async def open_connection(port: int) -> LocalConnection:
    """Connect to a port that a task was given.

    Raises Unavailable when nothing listens there.
    """
    try:
        return LocalConnection(*await asyncio.open_connection("127.0.0.1", port))
    except OSError as error:  # asyncio names the address in its own words
        raise port_closed(port, os.strerror(error.errno or errno.ECONNREFUSED)) from None
