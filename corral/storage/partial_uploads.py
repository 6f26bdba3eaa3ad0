"""Keep the received part of an archive whose upload broke off, until the rest arrives or it is too old.

A part is a file of its owner's folder, named by the SHA-256 that the whole archive shall have. Nothing reads it as an
archive before it is whole and checked. Each byte is in the file before the next is taken, so the file's length says how
far the upload is, also after the server was killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from corral.kernel.errors import Conflict, NotFound, TooLarge, TooManyRequests

KEPT_SECONDS: Final = 86_400.0
"""Seconds for which a part is kept after its last byte."""
MOST_OF_ONE: Final = 4
"""Parts of one account; a further upload takes the place of the one that was written to longest ago."""


class PartialUploads:
    """The parts of archives that are not whole yet, in one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._written: set[Path] = set()
        """Parts that are being written to, or checked."""

    def size(self, owner: str, digest: str) -> int | None:
        """The bytes of a part, None when there is none."""
        try:
            return self._path(owner, digest).stat().st_size
        except FileNotFoundError:
            return None

    def kept(self, owner: str) -> int:
        """The bytes of all parts of an account."""
        return sum(status.st_size for _, status in self._all_of(owner))

    def claim(self, owner: str, digest: str, offset: int) -> Claimed:
        """Give the part to one writer until `release`; for offset 0, make it if there is none.

        Raises Conflict when another request writes to it or `offset` is not its length, TooManyRequests when every part
        that the account may keep is being written to.
        """
        path = self._path(owner, digest)
        if path in self._written:
            raise Conflict("upload-busy", "Another request is sending this archive; ask how far it is, then go on.")
        size = self.size(owner, digest)
        if offset != (size or 0):
            message = f"The server has {size or 0} bytes of this archive, so the next byte is not byte {offset}."
            raise Conflict("wrong-offset", message, offset=size or 0)
        if size is None:
            self.forget_old()
            self._make_room(owner)
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._written.add(path)
        return Claimed(path, self._written)

    def remove(self, owner: str, digest: str) -> None:
        """Delete a part.

        Raises NotFound when there is none, Conflict while it is being written to.
        """
        path = self._path(owner, digest)
        if path in self._written:
            raise Conflict("upload-busy", "Another request is sending this archive; end that one first.")
        try:
            path.unlink()
        except FileNotFoundError:
            raise NotFound("no-such-upload", "No part of this archive is kept here.") from None

    def forget_old(self) -> None:
        """Delete the parts to which nothing was written for a day."""
        before = time.time() - KEPT_SECONDS
        for folder in self._root.iterdir() if self._root.is_dir() else ():
            for path, status in _files(folder):
                if path not in self._written and status.st_mtime < before:
                    path.unlink(missing_ok=True)

    def _make_room(self, owner: str) -> None:
        writing = sum(path.parent == self._folder(owner) for path in self._written)
        if writing >= MOST_OF_ONE:
            message = f"You are sending {MOST_OF_ONE} archives already; wait until one of them is done."
            raise TooManyRequests("too-many-uploads", message, retryAfter=10)
        idle = [(status.st_mtime, path) for path, status in self._all_of(owner) if path not in self._written]
        for _, path in sorted(idle)[: max(0, writing + len(idle) + 1 - MOST_OF_ONE)]:
            path.unlink(missing_ok=True)

    def _all_of(self, owner: str) -> Iterator[tuple[Path, os.stat_result]]:
        return _files(self._folder(owner))

    def _folder(self, owner: str) -> Path:
        return self._root / hashlib.sha256(owner.encode()).hexdigest()[:32]

    def _path(self, owner: str, digest: str) -> Path:
        return self._folder(owner) / digest


class Claimed:
    """A part that one request writes to; a context manager that lets the next writer in."""

    def __init__(self, path: Path, written: set[Path]) -> None:
        self.path = path
        self._written = written

    def __enter__(self) -> Claimed:
        return self

    def __exit__(self, *_: object) -> None:
        self._written.discard(self.path)

    async def append(self, stream: AsyncIterator[bytes], most: int) -> int:
        """Add what arrives to the part; return its length. What arrived before an error stays.

        Raises TooLarge when the part would be longer than `most`, and OSError.
        """
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            size = os.fstat(file).st_size
            async for chunk in stream:
                if size + len(chunk) > most:
                    raise TooLarge("code-too-large", f"The code archive is longer than {most} bytes.")
                for written in _write(file, chunk):
                    size += written
            return size
        finally:
            os.close(file)


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files of a folder that may not be there, without those that another process deletes meanwhile."""
    for path in folder.iterdir() if folder.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):
            yield path, path.stat()


def _write(file: int, chunk: bytes) -> Iterator[int]:
    """Write all of `chunk`; yield the bytes of each write, which a disk that fills may cut short."""
    rest = memoryview(chunk)
    while rest:
        written = os.write(file, rest)
        rest = rest[written:]
        yield written
