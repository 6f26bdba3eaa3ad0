"""Wake front and control within a millisecond after a commit.

A wake-up only means that the store has something new, so a lost one loses no data. With SQLite it is a datagram on a
Unix socket in the data folder, with PostgreSQL a NOTIFY sent by the committing transaction itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, text


class Wakeup(Protocol):
    """Wakes the other processes of a server."""

    def ring_within(self, connection: Connection, roles: frozenset[str]) -> None:
        """Ring as part of the transaction, just before its commit."""
        ...

    def ring_after(self, roles: frozenset[str]) -> None:
        """Ring after the commit; never fails, may be called from any thread."""
        ...

    async def wait(self, timeout: float) -> bool:
        """Wait until rung or for `timeout` seconds; returns whether it was rung. A ring before the call counts."""
        ...

    async def close(self) -> None:
        """Stop listening."""
        ...


class NoWakeup:
    """A wake-up for tools that neither ring nor listen."""

    def ring_within(self, connection: Connection, roles: frozenset[str]) -> None:
        """Do nothing."""

    def ring_after(self, roles: frozenset[str]) -> None:
        """Do nothing."""

    async def wait(self, timeout: float) -> bool:
        """Wait for the whole time."""
        await asyncio.sleep(timeout)
        return False

    async def close(self) -> None:
        """Do nothing."""


class _Bell:
    """An event that is cleared when a wait sees it."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, timeout: float) -> bool:
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class SocketWakeup:
    """Rings with datagrams on `RUN_FOLDER/ROLE.wake`."""

    def __init__(self, run_folder: Path, role: str) -> None:
        run_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = os.open(run_folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self._in: socket.socket | None = None
        self._bell = _Bell()
        self._loop: asyncio.AbstractEventLoop | None = None
        if role:
            self._listen(role)

    def _address(self, role: str) -> str:
        """The socket's address through the folder's descriptor, because its path may exceed a socket address."""
        return f"/proc/self/fd/{self._folder}/{role}.wake"

    def _listen(self, role: str) -> None:
        self._in = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{role}.wake", dir_fd=self._folder)
        self._in.bind(self._address(role))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._in.fileno(), self._heard)

    def _heard(self) -> None:
        assert self._in is not None
        with contextlib.suppress(BlockingIOError):
            while True:
                self._in.recv(16)
                self._bell.set()

    def ring_within(self, connection: Connection, roles: frozenset[str]) -> None:
        """Do nothing, because a datagram cannot be part of the commit."""

    def ring_after(self, roles: frozenset[str]) -> None:
        """Send a datagram to each role. Roles that do not listen or have unread rings are skipped."""
        for role in roles:
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError, BlockingIOError):
                self._out.sendto(b"!", self._address(role))

    async def wait(self, timeout: float) -> bool:
        """Wait until rung or until `timeout` seconds have passed."""
        return await self._bell.wait(timeout)

    async def close(self) -> None:
        """Stop listening. The socket's file stays; the next listener replaces it."""
        if self._in is not None and self._loop is not None:
            self._loop.remove_reader(self._in.fileno())
            self._in.close()
            self._in = None
        self._out.close()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


class NotifyWakeup:
    """Rings with NOTIFY on the channel `corral_ROLE`. A broken connection is reopened, which counts as a ring."""

    def __init__(self, dsn: str, role: str) -> None:
        self._dsn = dsn
        self._role = role
        self._bell = _Bell()
        self._task = asyncio.create_task(self._listen(), name=f"listen-{role}") if role else None

    def ring_within(self, connection: Connection, roles: frozenset[str]) -> None:
        """Notify with the commit."""
        for role in sorted(roles):
            connection.execute(_NOTIFY, {"channel": f"corral_{role}"})

    def ring_after(self, roles: frozenset[str]) -> None:
        """Do nothing, because the commit has rung."""

    async def _listen(self) -> None:
        import psycopg  # loaded only by servers on PostgreSQL

        while True:
            with contextlib.suppress(psycopg.Error, OSError):
                async with await psycopg.AsyncConnection.connect(self._dsn, autocommit=True, connect_timeout=3) as line:
                    await line.execute(
                        psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(f"corral_{self._role}"))
                    )
                    self._bell.set()
                    async for _ in line.notifies():
                        self._bell.set()
            self._bell.set()
            await asyncio.sleep(1)

    async def wait(self, timeout: float) -> bool:
        """Wait until rung or until `timeout` seconds have passed."""
        return await self._bell.wait(timeout)

    async def close(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None


_NOTIFY = text("SELECT pg_notify(:channel, '')")
