"""Unpack tar archives of code and copied files without writing outside the target folder.

Refused are absolute names, `..`, links that lead outside, entries below a link, devices and pipes, names that are not
text, too many entries, and too many bytes. Owners are ignored; of the permissions of code only "executable" is kept.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import tarfile
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal, NamedTuple

from corral.runtime.tarheaders import CheckedInfo

_CHUNK = 1 << 20


class Limits(NamedTuple):
    """The limits of an archive."""

    entries: int = 200_000
    total_bytes: int = 20 * 1024**3
    name_bytes: int = 32 * 1024**2
    """The total length of all names, which are kept while an archive is read."""
    ratio: int = 100
    """The largest ratio of unpacked to packed size, for archives that unpack to more than `small_bytes`."""
    small_bytes: int = 1024**3
    links: bool = True
    """Whether symbolic and hard links are allowed."""


DEFAULT_LIMITS = Limits()
_PATH = 4096
_DEPTH = 256


class UnsafeArchive(ValueError):
    """The archive is broken or malicious; the message names the entry and the problem."""


class TooLarge(UnsafeArchive):
    """The archive has more bytes than the limits allow."""


def check(archive: BinaryIO, limits: Limits = DEFAULT_LIMITS) -> None:
    """Check an archive like `unpack`, without writing anything.

    Raises UnsafeArchive.
    """
    size = archive.seek(0, os.SEEK_END)
    archive.seek(0)
    expanded = min(limits.total_bytes, max(limits.small_bytes, limits.ratio * size))
    for _ in entries(archive, limits._replace(total_bytes=expanded)):
        pass


def unpack(archive: BinaryIO, target: str, limits: Limits = DEFAULT_LIMITS, *, keep: bool = False) -> int:
    """Unpack a tar.gz into the folder `target` (created if missing) and return the number of entries.

    With `keep` what is there already stays as it is.

    Raises UnsafeArchive, OSError.
    """
    count = 0
    target = os.path.realpath(target)
    os.makedirs(target, exist_ok=True)
    for opened, member, name in entries(archive, limits):
        count += 1
        if not (keep and os.path.lexists(os.path.join(target, name))):
            write(opened, member, name, target)
    return count


def write(opened: tarfile.TarFile, member: tarfile.TarInfo, name: str, target: str, *, faithful: bool = False) -> None:
    """Write an entry from `entries` as `name` in the folder `target`, a path without links.

    With `faithful` a file keeps its time and its owner's permissions; others get read permissions at most.

    Raises UnsafeArchive if a link in that folder is on the way, OSError.
    """
    path = os.path.join(target, name)
    if name != "." and os.path.realpath(os.path.dirname(path)) != os.path.dirname(path):
        raise UnsafeArchive(f"{name!r} lies below a link in the folder that is there already")
    if member.isdir():
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    if member.issym():
        os.symlink(member.linkname, path)
    elif member.islnk():
        os.link(os.path.join(target, posixpath.normpath(member.linkname)), path, follow_symlinks=False)
    else:
        source = opened.extractfile(member)
        if source is None:
            raise UnsafeArchive(f"{name!r} has no content")
        mode = 0o755 if member.mode & 0o111 else 0o644
        if faithful:
            mode = 0o600 | member.mode & (0o755 if member.mode & 0o100 else 0o644)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with os.fdopen(handle, "wb") as file:
            while chunk := source.read(_CHUNK):
                file.write(chunk)
            if faithful:
                file.flush()
                with contextlib.suppress(OverflowError, ValueError, OSError):  # a time that no file can have
                    os.utime(handle, (member.mtime, member.mtime))


def entries(
    archive: Any, limits: Limits = DEFAULT_LIMITS, mode: Literal["r:gz", "r:", "r|"] = "r:gz"
) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo, str]]:
    """Yield every entry with its normalized name, checked against those before it; `mode` is `tarfile.open`'s.

    Raises UnsafeArchive before it reads the content of an entry that is too large; OSError.
    """
    links: set[str] = set()
    files: set[str] = set()
    count = names = 0
    try:
        with tarfile.open(fileobj=archive, mode=mode, tarinfo=CheckedInfo) as opened:
            while (member := opened.next()) is not None:
                opened.members = []  # type: ignore[attr-defined]  # or the list of all entries would be kept
                count += 1
                if count > limits.entries:
                    raise UnsafeArchive(f"it has more than {limits.entries} entries")
                if opened.offset > limits.total_bytes:  # with the headers, of which an entry may have many
                    raise TooLarge(f"it unpacks to more than {limits.total_bytes} bytes")
                names += len(member.name)
                if names > limits.name_bytes:
                    raise UnsafeArchive(f"its names have more than {limits.name_bytes} bytes")
                name = _checked(member, links, files)
                if not limits.links and (member.issym() or member.islnk()):
                    raise UnsafeArchive(f"{name!r} is a link")
                (links if member.issym() else files).add(name)
                yield opened, member, name
    except UnsafeArchive:
        raise
    except Exception as error:  # a broken archive can make the library raise anything
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UnsafeArchive(f"it is not a readable {'tar.gz' if mode == 'r:gz' else 'tar'} ({error})") from error


def _checked(member: tarfile.TarInfo, links: set[str], files: set[str]) -> str:
    name = _inside(member.name, member.name)
    parts = name.split("/")
    if len(parts) > _DEPTH:
        raise UnsafeArchive(f"{member.name[:100]!r} lies more than {_DEPTH} folders deep")
    for depth in range(1, len(parts)):
        if "/".join(parts[:depth]) in links:
            raise UnsafeArchive(f"{member.name!r} lies below a link")
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        raise UnsafeArchive(f"{member.name!r} is neither file, folder nor link")
    if member.issym():
        if name == ".":
            raise UnsafeArchive("the folder itself is a link")
        _inside(posixpath.join(posixpath.dirname(name), member.linkname), member.name)
        if member.linkname.startswith("/") or _climbs_late(member.linkname):
            raise UnsafeArchive(f"the link {member.name!r} leads outside")
    if member.islnk() and _inside(member.linkname, member.name) not in files:
        raise UnsafeArchive(f"the hard link {member.name!r} names no file before it")
    return name


def _climbs_late(target: str) -> bool:
    """Whether `..` follows a name: the name may be a link, so the text alone does not show where it leads."""
    parts = [part for part in target.split("/") if part not in ("", ".")]
    down = [part != ".." for part in parts]
    return down != sorted(down)


def _inside(path: str, shown: str) -> str:
    if len(path) > _PATH:
        raise UnsafeArchive(f"{shown[:100]!r} and so on is longer than {_PATH} characters")
    if "\0" in path or path.startswith("/") or not path:
        raise UnsafeArchive(f"{shown!r} is not a path inside the archive")
    plain = posixpath.normpath(path)
    if plain == ".." or plain.startswith("../"):
        raise UnsafeArchive(f"{shown!r} leads outside")
    return plain
