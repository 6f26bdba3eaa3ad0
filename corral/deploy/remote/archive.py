"""Files of an archive: taken out with a bound on their size, and put in without owners or times."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from corral.kernel.errors import Conflict, CorralError, InvalidInput

_PIECE: Final = 1024 * 1024


@contextmanager
def new_archive(target: Path, *, mode: int) -> Iterator[tarfile.TarFile]:
    """A new archive that is there whole, or not at all. Raises Conflict where a file is, CorralError for a full disk."""
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
            with tarfile.open(fileobj=opened, mode="w") as archive:
                yield archive
            opened.flush()
            os.fsync(opened.fileno())
        os.link(beside, target)
    except FileExistsError:
        raise Conflict("file-exists", f"{target} is there already; name another file, or remove it first.") from None
    except OSError as error:
        raise CorralError("unwritable-file", f"{target} cannot be written: {error.strerror}.") from None
    finally:
        beside.unlink(missing_ok=True)


def extract(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, most: int) -> Path:
    """Write a member to a file that only its owner reads. Raises InvalidInput where it is longer than that."""
    opened = archive.extractfile(member)
    if opened is None or member.size > most:
        raise InvalidInput("odd-archive", f"The part {target.name} is longer than {most} bytes.")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with opened, os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as written:
        _copy(opened, written)
    return target


def add_text(archive: tarfile.TarFile, name: str, text: bytes) -> None:
    """Add a member with this content."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(text), 0o600
    archive.addfile(member, io.BytesIO(text))


def add_file(archive: tarfile.TarFile, name: str, path: Path) -> None:
    """Add a file, or the one that a link leads to."""
    with path.open("rb") as opened:
        member = tarfile.TarInfo(name)
        member.size, member.mode = os.fstat(opened.fileno()).st_size, 0o600
        archive.addfile(member, opened)


def digest_of(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    while piece := source.read(_PIECE):
        target.write(piece)
