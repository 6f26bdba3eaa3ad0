"""Why: a log is here while it grows and for a while after, and in the archive for good; readers ask for it once."""

from __future__ import annotations

from typing import Protocol

from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId
from corral.storage.archive import ArchivedLog, LogArchive
from corral.storage.logs import LogFile, LogStore, name_of


class Log(Protocol):
    """The bytes of one stream of one attempt, wherever they are."""

    def exists(self) -> bool:
        """Whether anything was written or may be."""
        ...

    async def size(self) -> int:
        """Bytes there are now."""
        ...

    async def complete(self) -> bool:
        """Whether nothing will be written any more."""
        ...

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Up to `limit` bytes from `offset` on, and where they really begin."""
        ...

    async def tail(self, lines: int) -> int:
        """The offset at which the last `lines` lines begin."""
        ...

    async def wait(self, offset: int, seconds: float) -> bool:
        """Wait for bytes beyond `offset`, at most so long; False once the log is complete and has no more."""
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...


class LogShelf:
    """The logs of this machine, and those of the archive when there is one."""

    def __init__(self, store: LogStore, archive: LogArchive | None = None) -> None:
        self._store, self._archive = store, archive

    async def streams(self, attempt: AttemptId, *, apart: bool = False) -> tuple[str, ...]:
        """The streams that make up everything that the attempt prints: `all`, or both where it keeps them apart.

        `apart` is what its job says of them, for an attempt of which nothing is there yet.
        Raises Unavailable when only the archive can tell and does not answer.
        """
        if self._store.has(attempt):
            return self._store.streams(attempt)
        if self._archive is not None:
            if (await self._archive.look(attempt, "all")).segments:
                return ("all",)
            if (await self._archive.look(attempt, "stdout")).segments or (
                await self._archive.look(attempt, "stderr")
            ).segments:
                return ("stdout", "stderr")
        return ("stdout", "stderr") if apart else ("all",)

    async def source(self, attempt: AttemptId, stream: str = "all") -> LogFile | ArchivedLog:
        """A stream of an attempt: as it is here when it grows here, else as it is in the archive.

        Who asks for the errors of an attempt of which nothing is there yet is taken to know that they are kept apart.
        Raises InvalidInput for a stream that the attempt does not have, or an id that is none, Unavailable.
        """
        name_of(attempt, stream, split=stream != "all")  # an id that is none is no path either
        name = name_of(attempt, stream, split=len(await self.streams(attempt, apart=stream == "stderr")) > 1)
        local = LogFile(self._store.path(attempt, name), str(self._store.root))
        if self._archive is None or await local.complete():
            return local
        try:
            there = await self._archive.look(attempt, name)
        except Unavailable:
            if local.exists():
                return local
            raise
        if there.complete or (there.segments and not local.exists()):
            await local.close()
            return ArchivedLog(self._archive, attempt, name, there)
        return local
