"""Rotate the server's own logs: the process that writes a full log renames it and opens a new one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

DEFAULT_LOG_BYTES: Final = 16 * 1024**2
KEPT: Final = 3
"""The number of full logs kept beside the current one; LOG.1 is the latest."""
_STREAMS: Final = (1, 2)


class Rotation:
    """The log file of this process' standard output, standard error, or both."""

    def __init__(self, path: Path, limit: int) -> None:
        """`limit` in bytes; 0 never rotates."""
        self._path, self._limit = path, limit

    def look(self) -> None:
        """Rotate the log if it is full and this process writes to it; after a failure, a later call tries again."""
        if not self._limit:
            return
        with contextlib.suppress(OSError):
            written = os.stat(self._path)
            streams = [each for each in _STREAMS if os.path.samestat(os.fstat(each), written)]
            if streams and written.st_size >= self._limit:
                self._rotate(streams)

    def _rotate(self, streams: list[int]) -> None:
        for number in range(KEPT, 1, -1):
            with contextlib.suppress(FileNotFoundError):
                self._numbered(number - 1).rename(self._numbered(number))
        self._path.rename(self._numbered(1))
        try:
            new = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            self._numbered(1).rename(self._path)  # put the current log back under its name
            raise
        try:
            for stream in streams:
                os.dup2(new, stream)  # no line is lost: each goes to the old file or to the new one
        finally:
            os.close(new)

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
