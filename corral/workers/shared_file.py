"""A file in memory that a worker reads or writes by its path, so that long values do not go through pipes in one piece."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from typing import Final

PIECE: Final = 256 * 1024
"""Bytes of a piece, the most that are copied at once."""


class SharedFile:
    """A file without a name, which lives as long as this object. Other processes of this user open it by `path`."""

    def __init__(self) -> None:
        """Raises OSError."""
        if hasattr(os, "memfd_create"):
            self._handle = os.memfd_create("corral", os.MFD_CLOEXEC)
            self.path = f"/proc/{os.getpid()}/fd/{self._handle}"
            weakref.finalize(self, os.close, self._handle)
        else:
            self._handle, self.path = tempfile.mkstemp(prefix="corral-")
            weakref.finalize(self, _remove, self._handle, self.path)

    @property
    def size(self) -> int:
        """Its bytes."""
        return os.fstat(self._handle).st_size

    def write(self, data: bytes) -> None:
        """Append some bytes. Raises OSError."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._handle, view) :]

    def read(self) -> bytes:
        """All its bytes."""
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """Yield its bytes, `PIECE` at a time. Several readers do not disturb each other."""
        at = 0
        while data := os.pread(self._handle, PIECE, at):
            at += len(data)
            yield data


def _remove(handle: int, path: str) -> None:
    os.close(handle)
    os.unlink(path)
