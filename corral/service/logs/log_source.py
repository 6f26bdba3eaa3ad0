"""Find a log where it is: on this machine, in the archive, or on the leader's machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId
from corral.storage.log_archive import LogArchive
from corral.storage.log_files import LogStore
from corral.storage.log_sources import Log, LogSources

_WAIT_SECONDS: Final = 5
"""Most seconds that one request to the leader waits for more bytes."""
_PATIENCE: Final = 30.0
"""Most seconds that a reader waits for a leader."""
_PAUSE: Final = 0.5

Pull = Callable[[str], Awaitable[tuple[Mapping[str, str], bytes]]]
"""Requests a path from the leader; returns the answer's headers and body, raises Unavailable when none answers."""


class Logs(Protocol):
    """Finds the logs of all attempts."""

    async def streams(self, attempt: AttemptId, *, apart: bool = False) -> tuple[str, ...]:
        """The streams that hold everything the attempt prints; `apart` is its job's setting, used before it begins."""
        ...

    async def source(self, attempt: AttemptId, stream: str = "all") -> Log:
        """A stream of an attempt, to be read and followed."""
        ...


class SharedLogs:
    """Logs on several replicas: a growing log is read from the leader, whose disk holds it."""

    def __init__(self, store: LogStore, archive: LogArchive | None, pull: Pull) -> None:
        self._sources = LogSources(store, archive)
        self._pull = pull
        self.streams = self._sources.streams

    async def source(self, attempt: AttemptId, stream: str = "all") -> Log:
        """A stream of an attempt: local or archived if it is complete, else read from the leader.

        If no leader answers, it is the local part, if there is any. Raises InvalidInput, Unavailable.
        """
        found: Log = await self._sources.source(attempt, stream)
        if await found.complete():
            return found
        leaders = LeadersLog(attempt, stream, self._pull)
        try:
            await leaders.ask(0, 0)
        except Unavailable:
            if found.exists():
                return found
            raise
        await found.close()
        return leaders


class LeadersLog:
    """One log read from the leader, which may change meanwhile."""

    def __init__(self, attempt: AttemptId, stream: str, pull: Pull) -> None:
        self._path, self._pull = f"/logs/{attempt}/{stream}", pull
        self._there = self._complete = False
        self._size = 0

    def exists(self) -> bool:
        """Whether anything had been written when the leader last answered."""
        return self._there

    async def size(self) -> int:
        """Bytes written so far."""
        await self._ask("limit=0")
        return self._size

    async def complete(self) -> bool:
        """Whether the log was complete when the leader last answered."""
        return self._complete

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Return up to `limit` bytes from `offset` on, and the offset at which they really begin.

        Raises Unavailable when nobody leads for half a minute.
        """
        return await self._ask(f"offset={offset}&limit={limit}")

    async def tail(self, lines: int) -> int:
        """The offset at which the last `lines` lines begin."""
        begin, _ = await self._ask(f"tail={lines}")
        return begin

    async def wait(self, offset: int, seconds: float) -> bool:
        """Wait at most `seconds` for bytes beyond `offset`; False if the log is complete and has no more."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            await self._ask(f"offset={offset}&limit=0&wait={_WAIT_SECONDS}")
            if self._size > offset:
                return True
            if self._complete:
                return False
            if asyncio.get_running_loop().time() >= deadline or not self._there:
                return True

    async def close(self) -> None:
        """Do nothing: no resource is held."""

    async def ask(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Like `read`, but without waiting for a leader.

        Raises Unavailable when nobody leads.
        """
        return await self._once(f"offset={offset}&limit={limit}")

    async def _ask(self, question: str) -> tuple[int, bytes]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE
        while True:
            try:
                return await self._once(question)
            except Unavailable:
                if loop.time() >= deadline:
                    raise
            await asyncio.sleep(_PAUSE)

    async def _once(self, question: str) -> tuple[int, bytes]:
        headers, data = await self._pull(f"{self._path}?{question}")
        self._there, self._complete = headers["X-Corral-There"] == "1", headers["X-Corral-Complete"] == "1"
        self._size = int(headers["X-Corral-Size"])
        return int(headers["X-Corral-Offset"]), data
