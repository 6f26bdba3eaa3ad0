"""An in-memory blob store that can be unavailable, and a folder with the logs of one replica."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fsspec.implementations.memory import MemoryFileSystem

from corral.kernel.ids import AttemptId, attempt_id
from corral.storage.log_archive import ArchivedLog, LogArchive
from corral.storage.log_archiver import Growing, LogArchiver
from corral.storage.log_files import LogFile, LogStore
from corral.storage.log_sources import LogSources
from corral.storage.remote_folder import RemoteFolder

JOB = "01jd3c9x8aaaa"
TASK = attempt_id(JOB, 0, "worker", 0, 0)


class Moody(MemoryFileSystem):
    """A store in memory that can be unavailable."""

    cachable = False
    away = False

    def __init__(self) -> None:
        super().__init__()
        self.store: dict[str, Any] = {}
        self.pseudo_dirs = [""]
        self.writes = 0

    def archive(self) -> LogArchive:
        """The logs in it."""
        return LogArchive(RemoteFolder(self, "/logs", "memory://logs"))

    def open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        self._answer()
        self.writes += "w" in mode
        return super().open(path, mode, **more)

    def ls(self, path: str, detail: bool = True, **more: Any) -> Any:
        self._answer()
        return super().ls(path, detail, **more)

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        self._answer()
        super().rm(path, recursive, maxdepth)

    def _answer(self) -> None:
        if self.away:
            raise ConnectionError("nobody answers")


class Machine:
    """The logs of one replica."""

    def __init__(self, folder: Path, archive: LogArchive) -> None:
        self.store = LogStore(folder)
        self.store.open()
        self.archiver = LogArchiver(self.store, archive)
        self.shelf = LogSources(self.store, archive)

    def write(self, data: bytes, attempt: AttemptId = TASK) -> Path:
        """Append to a log."""
        path = Path(self.store.prepare(attempt)[0])
        with open(path, "ab") as file:
            file.write(data)
        return path

    def grows(self, mark: str = "1.0.1.0", attempt: AttemptId = TASK) -> None:
        """Make the next sweep copy the present part of a log."""
        size = os.stat(self.store.path(attempt, "all")).st_size
        self.archiver.growing = lambda: [Growing(attempt, "all", size, mark)]

    async def read(self, attempt: AttemptId = TASK, stream: str = "all") -> bytes:
        """A whole log, from the disk or the archive."""
        source = await self.shelf.source(attempt, stream)
        try:
            return await whole(source)
        finally:
            await source.close()


async def whole(source: LogFile | ArchivedLog, piece: int = 1 << 20) -> bytes:
    """All available bytes."""
    found, at = b"", 0
    while (read := await source.read(at, piece))[1]:
        found += read[1]
        at = read[0] + len(read[1])
    return found
