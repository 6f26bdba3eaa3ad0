"""Store code archives, and bundles of compiled code, by the SHA-256 of their content, each once and never partially.

With a remote folder the archives are there; the local folder caches those used lately.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from corral.kernel.errors import InvalidInput, NotFound, TooLarge, Unavailable
from corral.runtime.cache_bundle import LIMITS as CACHE_LIMITS
from corral.runtime.unpack import Limits, UnsafeArchive, check
from corral.storage.partial_uploads import Claimed, PartialUploads
from corral.workers.pool import LimitExceeded, Workers
from corral.workers.pool import Limits as WorkerLimits

if TYPE_CHECKING:
    from corral.storage.remote_folder import RemoteFolder  # its library is loaded only where there is a remote folder

BLOB_SCHEME = "blob:"
"""Prefix of a job's code URI that names an archive of a `BlobStore`."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEPT_SECONDS: Final = 7 * 86_400.0
"""Seconds for which a locally cached archive is kept after its last use, when the remote folder has it too."""
_FETCHING: Final = ".fetching"
_CHECKING: Final = WorkerLimits(memory=1 << 30, cpu_seconds=120)
"""Limits for the check of one archive; 20 GiB are read within them."""


class Stored(NamedTuple):
    """A stored archive: the SHA-256 of its bytes in hexadecimal, and their number."""

    digest: str
    size: int


class BlobStore:
    """Archives in one folder as `DIGEST.tar.gz`; an existing file is complete."""

    def __init__(
        self, root: Path, limits: Limits | None = None, remote: RemoteFolder | None = None, what: str = "code archive"
    ) -> None:
        """`what` is how messages call one of them."""
        self.root, self._what = root, what
        self._limits = limits or Limits()
        self._remote = remote
        self._fetches: dict[str, asyncio.Task[None]] = {}
        self.partial = PartialUploads(root / "partial")

    def open(self) -> None:
        """Make the folder and delete the remains of interrupted uploads.

        Raises OSError when it cannot be made.
        """
        self.root.mkdir(parents=True, exist_ok=True, mode=0o711)
        for leftover in self.root.glob("*.part"):
            leftover.unlink()
        self.partial.forget_old()

    async def put(self, stream: AsyncIterator[bytes], max_bytes: int, workers: Workers, digest: str = "") -> Stored:
        """Store an archive as it arrives; a worker checks the whole archive before it becomes visible.

        Raises TooLarge when it is longer than `max_bytes`; InvalidInput when its SHA-256 is not `digest` (if given), or
        when it is not a tar.gz or would write outside the folder it is unpacked into; Unavailable when the disk is
        full, the remote folder does not take it, or all workers are busy.
        """
        part = self.root / f"{secrets.token_hex(8)}.part"
        try:
            stored = await self._receive(stream, part, max_bytes)
            if digest and stored.digest != digest:
                message = "The archive has another SHA-256 than Content-Digest says; send it again."
                raise InvalidInput("digest-mismatch", message)
            await self._take(part, stored.digest, workers)
            return stored
        except OSError as error:
            raise _not_stored(error) from error
        finally:
            part.unlink(missing_ok=True)

    async def append(
        self, stream: AsyncIterator[bytes], part: Claimed, max_bytes: int, workers: Workers, whole: str = ""
    ) -> int:
        """Add to the part of an archive; return its bytes. `whole` is the SHA-256 to store it by when the stream ends.

        Raises what `put` does. The part is deleted when it can never be a good archive, and otherwise kept.
        """
        try:
            size = await part.append(stream, max_bytes)
            if not whole:
                return size
            if await asyncio.to_thread(_digest_of, part.path) != whole:
                message = "What arrived has another SHA-256 than its address says, so it was deleted; send it again."
                raise InvalidInput("digest-mismatch", message)
            await self._take(part.path, whole, workers)
            return size
        except InvalidInput:
            part.path.unlink(missing_ok=True)
            raise
        except OSError as error:
            raise _not_stored(error) from error

    async def _take(self, part: Path, digest: str, workers: Workers) -> None:
        """Check a whole archive, and make it visible by its digest."""
        try:
            if wrong := await workers.call(_wrong_with, part, self._limits, limits=_CHECKING):
                raise _refused(self._what, wrong)
        except LimitExceeded as error:
            raise _refused(self._what, f"to check it is too much work: {error}") from None
        if self._remote is not None:
            await self._remote.put(_name(digest), part)
        os.replace(part, self.path(digest))

    async def size(self, digest: str) -> int | None:
        """The size of an archive in bytes, None when there is none.

        Raises Unavailable when the remote folder does not answer.
        """
        path = self.path(digest)
        if self._remote is not None:
            return await self._remote.size(_name(digest))
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return None

    async def fetch(self, digest: str) -> Path:
        """The local file of an archive, downloaded from the remote folder if needed.

        Raises NotFound when there is none, Unavailable when it cannot be downloaded now.
        """
        path = self.path(digest)
        if self._remote is None or path.is_file():
            found = self.get(digest)
            if self._remote is not None:
                os.utime(found)
            return found
        fetch = self._fetches.get(digest)
        if fetch is None:
            fetch = self._fetches[digest] = asyncio.create_task(self._fetch(self._remote, digest))
            fetch.add_done_callback(lambda _: self._fetches.pop(digest, None))
        await asyncio.shield(fetch)
        return self.get(digest)

    def path(self, digest: str) -> Path:
        """The path of an archive, whether it exists or not.

        Raises InvalidInput when `digest` is not a SHA-256 in hexadecimal.
        """
        if not _DIGEST.fullmatch(digest):
            raise InvalidInput("bad-digest", "A digest is 64 hexadecimal digits (SHA-256).")
        return self.root / _name(digest)

    def get(self, digest: str) -> Path:
        """The file of an archive that is stored locally.

        Raises NotFound when it is not.
        """
        path = self.path(digest)
        if not path.is_file():
            raise _not_here(self._what, digest)
        return path

    async def is_intact(self, digest: str) -> bool:
        """Whether the content of an archive has its digest; False when it is gone.

        Raises Unavailable when the remote folder does not answer.
        """
        try:
            return await asyncio.to_thread(_digest_of, await self.fetch(digest)) == digest
        except (NotFound, FileNotFoundError):
            return False

    async def remove(self, digest: str) -> None:
        """Delete an archive, if there is one.

        Raises Unavailable when the remote folder does not answer; the archive is still there then.
        """
        if self._remote is not None:
            await self._remote.remove(_name(digest))
        self.path(digest).unlink(missing_ok=True)

    async def _fetch(self, remote: RemoteFolder, digest: str) -> None:
        part = self.root / f"{secrets.token_hex(8)}{_FETCHING}"
        try:
            await remote.get(_name(digest), part)
            if await asyncio.to_thread(_digest_of, part) != digest:
                message = f"The {self._what} {digest[:12]}… is damaged in {remote.shown}; upload it again."
                raise NotFound("code-damaged", message)
            os.replace(part, self.path(digest))
            await asyncio.to_thread(self._forget_old)
        except NotFound as error:
            if error.code == "code-damaged":
                raise
            raise _not_here(self._what, digest) from None
        except OSError as error:
            raise _not_stored(error) from error
        finally:
            part.unlink(missing_ok=True)

    def _forget_old(self) -> None:
        """Delete local archives that were not used for long; the remote folder has them."""
        before = time.time() - _KEPT_SECONDS
        for path in self.root.iterdir():
            if path.name.endswith((".tar.gz", _FETCHING)) and path.stat().st_mtime < before:
                path.unlink(missing_ok=True)

    async def _receive(self, stream: AsyncIterator[bytes], part: Path, max_bytes: int) -> Stored:
        digest, size = hashlib.sha256(), 0
        with _create(part) as file:
            async for chunk in stream:
                size += len(chunk)
                if size > max_bytes:
                    hint = "leave data out with .corralignore" if self._what == "code archive" else "it is not kept"
                    raise TooLarge("code-too-large", f"The {self._what} is larger than {max_bytes} bytes; {hint}.")
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())
        return Stored(digest.hexdigest(), size)


def blob_store(folder: Path, place: RemoteFolder | None, kind: str) -> BlobStore:
    """The store of one kind (`code`, `caches`, `profiles`) in the data folder, and in the folder that replicas share."""
    remote = place.below(kind) if place else None
    if kind == "caches":
        return BlobStore(folder / "blobs" / kind, CACHE_LIMITS, remote, "bundle of compiled code")
    return BlobStore(folder / "blobs" / kind, remote=remote, what="profile" if kind == "profiles" else "code archive")


def _name(digest: str) -> str:
    return f"{digest}.tar.gz"


def _not_here(what: str, digest: str) -> NotFound:
    return NotFound("no-such-code", f"The {what} {digest[:12]}… is not here; upload it again.")


def _not_stored(error: OSError) -> Unavailable:
    message = f"The archive could not be stored: {error.strerror}."
    return Unavailable("blob-store-unavailable", message, retry_after=10)


def _digest_of(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _wrong_with(path: Path, limits: Limits) -> str:
    """The problem with an archive; "" for a valid one."""
    try:
        with open(path, "rb") as archive:
            check(archive, limits)
    except UnsafeArchive as error:
        return str(error)
    return ""


def _refused(what: str, why: str) -> InvalidInput:
    return InvalidInput("bad-archive", f"The {what} was refused: {why}.")


def _create(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
