"""Bundles of compiled code: pack a folder into a tar.gz, and unpack one whose hash was checked.

A bundle holds regular files and folders alone. Packing follows no link, because the task's program wrote the folder.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from corral.runtime.unpack import Limits, unpack

LIMITS = Limits(entries=100_000, total_bytes=16 * 1024**3, links=False)
"""The limits of a bundle. Its packed size has a limit of its own, which the server tells."""
_LEVEL = 1
"""Packing must not delay the end of the task: a higher level takes three times as long and saves a tenth."""
_ODD = (".tmp", ".lock", "-atime")
"""Ends of names that are no compiled code: unfinished files, locks, and JAX's times of use."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class TooLarge(Exception):
    """A bundle would exceed its limit."""


class Seen(NamedTuple):
    """A file as it was seen: its size and the time of its last change."""

    size: int
    changed_ns: int


class Packed(NamedTuple):
    """A packed bundle: its SHA-256 in hexadecimal, its bytes, and how many files it has."""

    digest: str
    size: int
    files: int


def files_in(folder: str) -> dict[str, Seen]:
    """The regular files below a folder by their paths in it, without temporary ones and locks; no link is followed."""
    found: dict[str, Seen] = {}
    for path, name, handle in _walk(folder):
        info = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISREG(info.st_mode):
            found[path] = Seen(info.st_size, info.st_mtime_ns)
            if len(found) > LIMITS.entries // 2:  # their folders are entries too
                raise TooLarge(f"it has more than {LIMITS.entries // 2} files")
    return found


def pack(folder: str, wanted: Collection[str], to: BinaryIO, most_bytes: int) -> Packed:
    """Pack the wanted files of a folder, by their paths in it. The same files give the same bytes.

    Raises TooLarge as soon as it is longer than `most_bytes`, OSError.
    """
    out = _Hashing(to, most_bytes)
    count = 0
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=_LEVEL, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path, name, handle in _walk(folder):
            if path not in wanted:
                continue
            with os.fdopen(os.open(name, _READ, dir_fd=handle), "rb") as file:
                info = os.fstat(file.fileno())
                if not stat.S_ISREG(info.st_mode):
                    continue
                member = tarfile.TarInfo(path)
                member.size, member.mode = info.st_size, 0o755 if info.st_mode & 0o100 else 0o644
                archive.addfile(member, file)
                count += 1
    return Packed(out.digest(), out.size, count)


def restore(archive: BinaryIO, folder: str) -> dict[str, Seen]:
    """Unpack a bundle into a folder; its files. Raises UnsafeArchive, OSError."""
    unpack(archive, folder, LIMITS)
    return files_in(folder)


def copy_checked(
    chunks: Iterable[bytes], to: BinaryIO, size: int, digest: str, in_time: Callable[[], bool] = lambda: True
) -> str:
    """Copy a bundle as it arrives; the reason for which it cannot be used, "" for one of this length and hash."""
    left, seen = size, hashlib.sha256()
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            return "it is longer than it was"
        if not in_time():
            return "it did not arrive in time"
        seen.update(chunk)
        to.write(chunk)
    return "" if not left and seen.hexdigest() == digest else "it is not what was published"


def _walk(folder: str) -> Iterator[tuple[str, str, int]]:
    """Each entry that is no folder: its path in `folder`, its name, and the open folder that holds it; in order."""
    for here, folders, names, handle in os.fwalk(folder, follow_symlinks=False):
        folders.sort()
        inside = os.path.relpath(here, folder)
        for name in sorted(names):
            if not name.endswith(_ODD) and _is_text(name):
                yield (name if inside == "." else os.path.join(inside, name)), name, handle


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Hashing:
    """A file that hashes and counts what is written to it, up to a number of bytes."""

    def __init__(self, file: BinaryIO, most_bytes: int) -> None:
        self._file, self._most, self._hash = file, most_bytes, hashlib.sha256()
        self.size = 0

    def write(self, data: Any) -> int:
        """Write some bytes."""
        self.size += len(data)
        if self.size > self._most:
            raise TooLarge(f"it has more than {self._most} bytes")
        self._hash.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Flush the file."""
        self._file.flush()

    def digest(self) -> str:
        """The SHA-256 so far."""
        return self._hash.hexdigest()
