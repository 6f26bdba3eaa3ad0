"""The journal of a server: files in a folder, of which the newest is written step by step and the others are packed.

A record is handed to the system before its step is stored, so that a kill at any moment loses no step that was
stored. What a power cut may lose is bounded by how often `sync` is called.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from corral.control.journal.blocks import BlockReader, BlockWriter
from corral.kernel.errors import InvalidInput

OPEN: Final = ".open"
"""The ending of files that are written step by step."""
PACKED: Final = ".journal"
_FULL_BYTES: Final = 8 << 20
"""Bytes after which the next file is begun."""
_NOT_COMPRESSED: Final = 0


class JournalFolder:
    """Takes records; one other thread may call `sync`, `pack` and `tidy`."""

    def __init__(self, folder: Path, *, most_bytes: int, most_seconds: float) -> None:
        """Of packed files as many are kept, from the newest on, as fit both bounds.

        Raises OSError.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self.written = 0
        """Bytes of the records since somebody set it to 0."""
        self._most_bytes = most_bytes
        self._most_seconds = most_seconds
        self._open: _OpenFile | None = None
        self._full = deque(_OpenFile(each) for each in sorted(folder.glob(f"*{OPEN}")))
        """Files to be packed; at first those that a process before this one left."""
        self._last = 0

    def add(self, record: bytes, now: float) -> None:
        """Hand a record to the system; raises OSError, or InvalidInput for a record that is too large."""
        if self._open is None or self._open.size > _FULL_BYTES:
            self._next(now)
        assert self._open is not None
        self._open.add(record)
        self.written += len(record)

    def begin_file(self) -> None:
        """Have the next record begin a file, as after an error."""
        if self._open is not None:
            self._full.append(self._open)
            self._open = None

    def close(self) -> None:
        """Close the files that are written, as they are; who opens the folder next packs them."""
        self.begin_file()
        for file in self._full:
            file.close()

    def _next(self, now: float) -> None:
        self.begin_file()
        self._last = max(self._last + 1, int(now * 1000))  # names sort by age, even when the clock goes back
        file = _OpenFile(self.folder / f"{self._last:015}{OPEN}")
        file.open()
        self._open = file

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to sync and nothing to pack."""
        return not self._full and (self._open is None or self._open.is_synced)

    def sync(self) -> None:
        """Have the disk keep all that was added; raises OSError."""
        if (file := self._open) is not None:
            file.sync()

    def pack(self) -> None:
        """Compress the files that are full, and those that a process before this one left; raises OSError."""
        while self._full:
            self._full[0].pack()
            self._full.popleft()

    def tidy(self, now: float) -> None:
        """Delete the oldest packed files, as many as are beyond the bounds; raises OSError."""
        size = 0
        for file in sorted(self.folder.iterdir(), reverse=True):
            found = file.stat()
            size += found.st_size
            too_old = now - found.st_mtime > self._most_seconds
            if file.suffix == PACKED and (size > self._most_bytes or too_old):
                file.unlink()


class _OpenFile:
    """A file that is written step by step, each record as a block that is not compressed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._blocks: BlockWriter | None = None
        self._synced = 0
        self.size = 0

    def open(self) -> None:
        """Create it; raises OSError."""
        self._file = open(self._path, "xb", opener=private)  # noqa: SIM115 - closed when it is packed
        self._blocks = BlockWriter(self._file, level=_NOT_COMPRESSED)

    def add(self, record: bytes) -> None:
        """Hand a record to the system; raises OSError."""
        assert self._file is not None and self._blocks is not None
        self._blocks.add(record)
        self._blocks.flush()
        self._file.flush()
        self.size += len(record)

    @property
    def is_synced(self) -> bool:
        """Whether the disk keeps all that was added."""
        return self._synced == self.size

    def sync(self) -> None:
        """Have the disk keep what was added; raises OSError."""
        if self._file is not None and not self.is_synced:
            size = self.size
            os.fdatasync(self._file.fileno())
            self._synced = size

    def close(self) -> None:
        """Close it, if this process has it open."""
        if self._file is not None:
            with suppress(OSError):  # after a full disk there may be a rest that cannot be written
                self._file.close()

    def pack(self) -> None:
        """Replace it by a compressed file, up to the last whole block; raises OSError."""
        self.close()
        part = self._path.with_suffix(".part")
        with self._path.open("rb") as source, open(part, "wb", opener=private) as target:
            blocks = BlockWriter(target)
            for record in _whole(source):
                blocks.add(record)
            blocks.close()
            target.flush()
            os.fsync(target.fileno())
        part.replace(self._path.with_suffix(PACKED))
        self._path.unlink()


def private(path: str, flags: int) -> int:
    """Open a file that only its owner may read, as jobs' commands and environments are in it."""
    return os.open(path, flags, 0o600)


def _whole(source: BinaryIO) -> Iterator[bytes]:
    """The records of a file up to its last whole block; none of one whose header was cut off."""
    try:
        yield from BlockReader(source)
    except InvalidInput:
        return


def recorded(folder: Path) -> Iterator[bytes]:
    """The records of all files of a folder, oldest first; a file that is packed or deleted meanwhile is left out.

    The newest file has no end mark while it is written.
    """
    for name in sorted({each.stem for each in folder.iterdir() if each.suffix in (OPEN, PACKED)}):
        for ending in (OPEN, PACKED):
            try:
                opened = (folder / f"{name}{ending}").open("rb")
            except FileNotFoundError:
                continue
            with opened:
                yield from _whole(opened)
            break
