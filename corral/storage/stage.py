"""Why: inputs come from and outputs go to places that only this room opens, through one library (fsspec).

A file or a whole tree is copied. Each file is written beside its place and renamed, so what is there is whole; a second
run copies only what is missing or differs in size, or is older than its source, and a half-copied file goes on where it
stopped. Links are not followed out of a tree, and no name can lead outside of the destination.
"""

from __future__ import annotations

import os
import posixpath
import time
from dataclasses import dataclass
from typing import Any, TextIO

import fsspec
from fsspec.core import url_to_fs

from corral.kernel.errors import InvalidInput, NotFound, Unavailable

SCHEMES = ("file",)
"""What may be staged now."""
_CHUNK = 4 << 20
_EVERY = 5.0
_PART = ".corral-part"


@dataclass
class Done:
    """What a staging moved, and how many files were there already."""

    files: int = 0
    bytes: int = 0
    kept: int = 0


class Progress:
    """A line every five seconds, so that a log says how far a long copy is."""

    def __init__(self, to: TextIO) -> None:
        self._to = to
        self._next = time.monotonic() + _EVERY

    def at(self, done: Done, total_files: int, total_bytes: int) -> None:
        """Tell how far it is, if it is time to."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY
            share = done.bytes * 100 // max(1, total_bytes)
            print(f"corral: staging {share} %, {done.files} of {total_files} files", file=self._to, flush=True)


def stage(source: str, destination: str, progress: Progress) -> Done:
    """Copy the file or tree `source` to `destination` (paths or URIs).

    Raises InvalidInput for a scheme or name that is not allowed, NotFound when there is no source, Unavailable when
    reading or writing fails; what was copied stays, and the same call goes on from there.
    """
    from_fs, from_root = _place(source)
    to_fs, to_root = _place(destination)
    done = Done()
    try:
        sizes = _listing(from_fs, from_root, source)
        total = sum(sizes.values())
        for name, size in sizes.items():
            target = _inside(to_root, name)
            done.bytes += size
            if _is_there(from_fs, posixpath.join(from_root, name) if name else from_root, to_fs, target, size):
                done.kept += 1
            else:
                _copy(from_fs, posixpath.join(from_root, name) if name else from_root, to_fs, target)
                done.files += 1
            progress.at(done, len(sizes), total)
    except OSError as error:
        raise Unavailable("staging-failed", f"{source} could not be copied to {destination}: {error}.") from error
    return done


def _place(text: str) -> tuple[Any, str]:
    scheme = text.partition("://")[0] if "://" in text else "file"
    if scheme not in SCHEMES:
        raise InvalidInput("unknown-scheme", f"{scheme}: cannot be staged; use one of: {', '.join(SCHEMES)}.")
    if scheme == "file" and "://" in text and not text.startswith("file:///"):
        raise InvalidInput("bad-uri", f"{text} names a host; a file URI reads file:///absolute/path.")
    filesystem, path = url_to_fs(text)
    return filesystem, str(path)


def _listing(filesystem: Any, root: str, shown: str) -> dict[str, int]:
    """Size by name below `root`; a single file has the name ""."""
    if not filesystem.exists(root):
        raise NotFound("no-such-data", f"There is nothing at {shown}.")
    if filesystem.isfile(root):
        return {"": int(filesystem.size(root))}
    sizes: dict[str, int] = {}
    for folder, _, files in filesystem.walk(root, detail=True):
        for name, info in files.items():
            relative = posixpath.relpath(posixpath.join(folder, name), root)
            if name.endswith(_PART):
                continue
            if info.get("islink") and not _stays_inside(filesystem, root, posixpath.join(folder, name)):
                raise InvalidInput(
                    "link-outside", f"{relative} in {shown} is a link that leads outside; copy its target."
                )
            sizes[relative] = int(info["size"])
    return sizes


def _stays_inside(filesystem: Any, root: str, path: str) -> bool:
    if not isinstance(filesystem, fsspec.implementations.local.LocalFileSystem):
        return False
    real_root = os.path.realpath(root)
    return os.path.realpath(path).startswith(real_root.rstrip("/") + "/")


def _inside(root: str, name: str) -> str:
    if not name:
        return root
    plain = posixpath.normpath(name)
    if plain.startswith(("/", "../")) or plain == "..":
        raise InvalidInput("path-outside", f"{name!r} would be written outside of the destination.")
    return posixpath.join(root, plain)


def _is_there(from_fs: Any, source: str, to_fs: Any, target: str, size: int) -> bool:
    try:
        info = to_fs.info(target)
    except FileNotFoundError:
        return False
    if info["type"] != "file" or int(info["size"]) != size:
        return False
    here, there = from_fs.info(source).get("mtime"), info.get("mtime")
    return here is None or there is None or there >= here


def _copy(from_fs: Any, source: str, to_fs: Any, target: str) -> None:
    to_fs.makedirs(posixpath.dirname(target), exist_ok=True)
    part = f"{target}{_PART}"
    begun = int(to_fs.size(part)) if to_fs.exists(part) else 0
    resumable = 0 < begun <= int(from_fs.size(source)) and _older(from_fs, source, to_fs, part)
    with from_fs.open(source, "rb") as reader, to_fs.open(part, "ab" if resumable else "wb") as writer:
        if resumable:
            reader.seek(begun)
        while chunk := reader.read(_CHUNK):
            writer.write(chunk)
    to_fs.mv(part, target)


def _older(from_fs: Any, source: str, to_fs: Any, part: str) -> bool:
    """Whether the source has not changed since the part was written."""
    here, there = from_fs.info(source).get("mtime"), to_fs.info(part).get("mtime")
    return here is not None and there is not None and here <= there
