"""Why: code goes up once and is known by its content, so the same archive is stored once and never half."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from corral.kernel.errors import InvalidInput, NotFound, TooLarge, Unavailable
from corral.runtime.unpack import Limits, UnsafeArchive, check

BLOB_SCHEME = "blob:"
"""What a job's code URI begins with when it names an archive of a `BlobStore`."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Stored(NamedTuple):
    """What was put: the SHA-256 of its bytes in hexadecimal, and their number."""

    digest: str
    size: int


class BlobStore:
    """Archives under one folder as `DIGEST.tar.gz`; a file that is there is complete."""

    def __init__(self, root: Path, limits: Limits | None = None) -> None:
        self.root = root
        self._limits = limits or Limits()

    def open(self) -> None:
        """Make the folder and drop what interrupted uploads left.

        Raises OSError when it cannot be made.
        """
        self.root.mkdir(parents=True, exist_ok=True, mode=0o711)
        for leftover in self.root.glob("*.part"):
            leftover.unlink()

    async def put(self, stream: AsyncIterator[bytes], max_bytes: int) -> Stored:
        """Store an archive as it arrives; it is checked as a whole before anyone can see it.

        Raises TooLarge when it is longer than `max_bytes`, InvalidInput when it is no tar.gz or would write outside of
        the folder it is unpacked into, Unavailable when the disk is full.
        """
        part = self.root / f"{secrets.token_hex(8)}.part"
        try:
            stored = await self._receive(stream, part, max_bytes)
            await asyncio.to_thread(_check, part, self._limits)
            os.replace(part, self.path(stored.digest))
            return stored
        except UnsafeArchive as error:
            raise InvalidInput("bad-archive", f"The code archive was refused: {error}.") from error
        except OSError as error:
            message = f"The archive could not be stored: {error.strerror}."
            raise Unavailable("blob-store-unavailable", message, retry_after=10) from error
        finally:
            part.unlink(missing_ok=True)

    def size(self, digest: str) -> int | None:
        """The bytes of an archive, None when it is not here."""
        try:
            return self.path(digest).stat().st_size
        except FileNotFoundError:
            return None

    def path(self, digest: str) -> Path:
        """Where an archive is or would be.

        Raises InvalidInput when `digest` is no SHA-256 in hexadecimal.
        """
        if not _DIGEST.fullmatch(digest):
            raise InvalidInput("bad-digest", "A digest is 64 hexadecimal digits (SHA-256).")
        return self.root / f"{digest}.tar.gz"

    def get(self, digest: str) -> Path:
        """The file of an archive.

        Raises NotFound when it is not here.
        """
        path = self.path(digest)
        if not path.is_file():
            raise NotFound("no-such-code", f"The code archive {digest[:12]}… is not here; upload it again.")
        return path

    def remove(self, digest: str) -> None:
        """Delete an archive, if it is here."""
        self.path(digest).unlink(missing_ok=True)

    async def _receive(self, stream: AsyncIterator[bytes], part: Path, max_bytes: int) -> Stored:
        digest, size = hashlib.sha256(), 0
        with _create(part) as file:
            async for chunk in stream:
                size += len(chunk)
                if size > max_bytes:
                    message = f"The code archive is larger than {max_bytes} bytes; leave data out with .corralignore."
                    raise TooLarge("code-too-large", message)
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())
        return Stored(digest.hexdigest(), size)


def _check(path: Path, limits: Limits) -> None:
    with open(path, "rb") as archive:
        check(archive, limits)


def _create(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
