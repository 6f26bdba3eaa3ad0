"""The blocks of a journal file, each with its sizes and a checksum that continues the one before it.

docs/journal.md describes the format.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO, Final

from corral.kernel.errors import InvalidInput

MAGIC: Final = b"CORRALJ\n"
"""The first bytes of a journal file."""
VERSION: Final = 1
"""The version of the format that this Corral writes; it reads this one and earlier ones."""
MOST_RAW: Final = 64 << 20
"""The most bytes of a block's records."""
FULL: Final = 256 << 10
"""Bytes of records after which a block is written."""
_FILE: Final = Struct(">8sHxx")
_BLOCK: Final = Struct(">II16s")
_RECORD: Final = Struct(">I")
_LEVEL: Final = 6


class BlockWriter:
    """Writes records to a file, in blocks; `close` adds the end mark and leaves the file open."""

    def __init__(self, file: BinaryIO, level: int = _LEVEL) -> None:
        """`level` is that of zlib; with 0 records are stored as they are, for files that are written record by record."""
        self._file = file
        self._level = level
        header = _FILE.pack(MAGIC, VERSION)
        self._chain = _checksum(b"", 0, 0, header)
        self._waiting: list[bytes] = []
        self._size = 0
        file.write(header)

    def add(self, record: bytes) -> None:
        """Add a record; raises InvalidInput for one that is larger than a block."""
        size = len(record) + _RECORD.size
        if size > MOST_RAW:
            message = f"A record of {len(record)} bytes is too large for a journal; a block has at most {MOST_RAW}."
            raise InvalidInput("journal-record-too-large", message)
        if self._size + size > MOST_RAW:
            self.flush()
        self._waiting += (_RECORD.pack(len(record)), record)
        self._size += size
        if self._size >= FULL:
            self.flush()

    def flush(self) -> None:
        """Write what was added as a block of its own."""
        if self._waiting:
            raw = b"".join(self._waiting)
            self._waiting, self._size = [], 0
            stored = zlib.compress(raw, self._level) if self._level else raw
            self._write(stored if len(stored) < len(raw) else raw, len(raw))

    def close(self) -> None:
        """Write the rest, and the mark that nothing follows."""
        self.flush()
        self._write(b"", 0)

    def _write(self, stored: bytes, raw_size: int) -> None:
        self._chain = _checksum(self._chain, len(stored), raw_size, stored)
        self._file.write(_BLOCK.pack(len(stored), raw_size, self._chain) + stored)


class BlockReader:
    """Reads the records of a file; `problem` says afterwards why reading ended before the end mark."""

    def __init__(self, file: BinaryIO) -> None:
        """Raises InvalidInput for a file that is no journal, or of a newer version."""
        self._file = file
        header = file.read(_FILE.size)
        if len(header) < _FILE.size or not header.startswith(MAGIC):
            raise InvalidInput("no-journal", "The file is not a journal of Corral: it does not begin as one.")
        _, version = _FILE.unpack(header)
        if version > VERSION:
            message = (
                f"The journal has version {version} of the format, and this Corral reads {VERSION}; use a newer one."
            )
            raise InvalidInput("newer-journal", message)
        self._chain = _checksum(b"", 0, 0, header)
        self.blocks = 0
        """The whole blocks that were read."""
        self.problem = ""
        """One sentence; "" while there is none."""
        self.cut_off = False
        """Whether the file only ends too early, as one does that is being written."""

    def __iter__(self) -> Iterator[bytes]:
        """Yield each record of each whole block, up to the end mark or the first block that is not whole."""
        while (raw := self._next()) is not None:
            records = _records(raw)
            if records is None:
                self._broken("holds records that do not fit it")
                return
            self.blocks += 1
            yield from records

    def _next(self) -> bytes | None:
        head = self._file.read(_BLOCK.size)
        if len(head) < _BLOCK.size:
            self.cut_off = True
            return self._broken("is missing or was cut off")
        stored_size, raw_size, checksum = _BLOCK.unpack(head)
        if not stored_size <= raw_size <= MOST_RAW:
            return self._broken("says that it is larger than any block may be")
        stored = self._file.read(stored_size)
        if len(stored) < stored_size:
            self.cut_off = True
            return self._broken("was cut off")
        if _checksum(self._chain, stored_size, raw_size, stored) != checksum:
            return self._broken("was altered: its checksum does not fit")
        self._chain = checksum
        if not stored_size and not raw_size:
            return None
        raw = stored if stored_size == raw_size else _decompressed(stored, raw_size)
        return raw if raw is not None else self._broken("cannot be decompressed")

    def _broken(self, what: str) -> bytes | None:
        """Remember what is wrong with the next block; there is nothing to read in it."""
        self.problem = f"Block {self.blocks + 1} of the journal {what}; it was read up to the last whole block before."
        return None


def _records(raw: bytes) -> list[bytes] | None:
    """The records of a block; None where their lengths do not fit it."""
    found, at = [], 0
    while at < len(raw):
        begin = at + _RECORD.size
        if begin > len(raw):
            return None
        at = begin + _RECORD.unpack_from(raw, at)[0]
        if at > len(raw):
            return None
        found.append(raw[begin:at])
    return found


def _decompressed(stored: bytes, raw_size: int) -> bytes | None:
    """The records of a block; None if they are not exactly so many bytes."""
    reader = zlib.decompressobj()
    try:
        raw = reader.decompress(stored, raw_size + 1)
    except zlib.error:
        return None
    return raw if len(raw) == raw_size and reader.eof and not reader.unused_data else None


def _checksum(before: bytes, stored_size: int, raw_size: int, stored: bytes) -> bytes:
    """A checksum of a block that continues the one before it, so that no block can be left out or moved."""
    found = hashlib.blake2b(before, digest_size=16)
    found.update(_RECORD.pack(stored_size) + _RECORD.pack(raw_size))
    found.update(stored)
    return found.digest()
