"""Find an attempt's log: on this machine while it grows and for a while after, then in the archive."""

from __future__ import annotations

from typing import Protocol

from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId
from corral.storage.log_archive import ArchivedLog, LogArchive
from corral.storage.log_files import LogFile, LogStore, name_of


class Log(Protocol):
    """The bytes of one stream of one attempt, here or in the archive."""

    def exists(self) -> bool:
        """Whether the log exists, even if it is empty."""
        ...

    async def size(self) -> int:
        """Its current size in bytes."""
        ...

    async def complete(self) -> bool:
        """Whether nothing will be written any more."""
        ...

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Up to `limit` bytes from `offset` on, with the offset at which they really begin."""
        ...

    async def tail(self, lines: int) -> int:
        """The offset at which the last `lines` lines begin."""
        ...

    async def wait(self, offset: int, seconds: float) -> bool:
        """Wait at most `seconds` for bytes beyond `offset`; False once the log is complete and has no more."""
        ...

    async def close(self) -> None:
        """Close it."""
        ...


class LogSources:
    """The logs of this machine and, when there is one, of the archive."""

    def __init__(self, store: LogStore, archive: LogArchive | None = None) -> None:
        self._store, self._archive = store, archive

    async def streams(self, attempt: AttemptId, *, apart: bool = False) -> tuple[str, ...]:
        """The streams of an attempt's output: `all`, or `stdout` and `stderr` where they are kept apart.

        `apart` is the job's setting, for an attempt that has no log yet. Raises Unavailable when only the archive can
        tell and does not answer.
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
        """A stream of an attempt: the local file while it grows here, else the archived log.

        For an attempt without a log, a request for `stderr` implies that its streams are kept apart. Raises
        InvalidInput for a stream that the attempt does not have or an invalid id, Unavailable.
        """
        name_of(attempt, stream, split=stream != "all")  # before any path is made of the id
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
