"""Files that a simulation reads: they are there, and no larger than fits in memory."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from corral.kernel.errors import InvalidInput, NotFound

_MOST_BYTES: Final = 1 << 30


def check_file(file: Path) -> None:
    """Raise NotFound if the file is not there, and InvalidInput if it is too large."""
    if not file.is_file():
        raise NotFound("no-file", f"{file} is not there.")
    if file.stat().st_size > _MOST_BYTES:
        raise InvalidInput("file-too-large", f"{file} is larger than {_MOST_BYTES >> 20} MiB.")


def read_bounded(file: Path) -> bytes:
    """Return what is in the file; raises as `check_file` does."""
    check_file(file)
    return file.read_bytes()


def hash_of(file: Path) -> str:
    """Return a hash of what is in the file, read in parts; raises as `check_file` does."""
    check_file(file)
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "blake2b").hexdigest()


def hash_of_all(place: Path) -> str:
    """Return a hash of a file, or of the files in the folders of a folder, by their names; raises as `check_file` does."""
    if not place.is_dir():
        return hash_of(place)
    found = hashlib.blake2b()
    for file in sorted(place.glob("*/*")):
        if file.is_file():
            found.update(f"{file.relative_to(place)} {hash_of(file)}\n".encode())
    return found.hexdigest()
