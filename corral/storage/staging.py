"""Copy a task's inputs and outputs between local folders and storages, with fsspec.

A file or a whole tree is copied. Each file is written under another name and renamed, so an existing file is complete;
an object store shows no file before it is complete. A second run copies only files that are missing, differ in size or
are older than their source, and continues a partly copied file. Links that lead out of a tree are refused, and no name
can lead outside the destination. Endpoints and credentials come from the environment variables of the libraries
(`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, `HADOOP_CONF_DIR` …).
"""

from __future__ import annotations

import os
import posixpath
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TextIO

import fsspec
from fsspec.core import url_to_fs

from corral.kernel.errors import CorralError, InvalidInput, NotFound, Unavailable
from corral.storage import hdfs

SCHEMES = {"file": "", "s3": "s3", "hdfs": "hdfs", "webhdfs": "hdfs"}
"""The schemes that can be staged, each with the extra of Corral that installs its library."""
_OBJECTS = ("s3", "s3a")
"""Protocols of object stores: a file is there whole or not at all, and there are no folders."""
_CHUNK = 4 << 20
_EVERY = 5.0
_PART = ".corral-part"
_MOST_WORDS = 500
"""Characters of a library's error message that are passed on."""


@dataclass
class Done:
    """The files and bytes that were staged, and the number of files that were there already."""

    files: int = 0
    bytes: int = 0
    kept: int = 0


class Progress:
    """Prints a line every five seconds, so that a log shows the progress of a long copy."""

    def __init__(self, to: TextIO) -> None:
        self._to = to
        self._next = time.monotonic() + _EVERY

    def at(self, done: Done, total_files: int, total_bytes: int) -> None:
        """Print the progress, at most every five seconds."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY
            share = done.bytes * 100 // max(1, total_bytes)
            print(f"corral: staging {share} %, {done.files} of {total_files} files", file=self._to, flush=True)


def stage(source: str, destination: str, progress: Progress, *, keep_times: bool = False) -> Done:
    """Copy the file or tree `source` to `destination` (paths or URIs).

    With `keep_times`, local copies keep the modification time of their source, if it has one.

    Raises InvalidInput for a scheme or name that is not allowed, NotFound when there is no source, Unavailable when
    reading or writing fails; copied files stay, and the same call continues from there.
    """
    from_fs, from_root = place(source)
    to_fs, to_root = place(destination)
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
                if keep_times:
                    _keep_time(from_fs, posixpath.join(from_root, name) if name else from_root, to_fs, target)
                done.files += 1
            progress.at(done, len(sizes), total)
    except CorralError:
        raise
    except Exception as error:  # each library has errors of its own
        said = words_of(error)
        raise Unavailable("staging-failed", f"{source} could not be copied to {destination}: {said}.") from error
    return done


def place(text: str, **options: Any) -> tuple[Any, str]:
    """The file system and the path of a path or URI; `options` are passed to fsspec's own file systems.

    Raises InvalidInput for a scheme or host that is not allowed and for a missing library, Unavailable when the library
    cannot open it.
    """
    scheme = text.partition("://")[0] if "://" in text else "file"
    if scheme not in SCHEMES:
        raise InvalidInput("unknown-scheme", f"{scheme}: cannot be staged; use one of: {', '.join(SCHEMES)}.")
    if scheme == "file" and "://" in text and not text.startswith("file:///"):
        raise InvalidInput("bad-uri", f"{text} names a host; a file URI reads file:///absolute/path.")
    try:
        filesystem, path = hdfs.place(text) if scheme in hdfs.SCHEMES else url_to_fs(text, **options)
    except ImportError:
        message = f"{scheme}: needs a library that is not installed here: pip install 'corral[{SCHEMES[scheme]}]'."
        raise InvalidInput("storage-library-missing", message) from None
    except Exception as error:
        raise Unavailable("storage-unavailable", f"{text} could not be opened: {words_of(error)}.") from error
    return filesystem, str(path)


def words_of(error: Exception) -> str:
    """A library's error message in one line."""
    said = hdfs.plain_words(str(error).strip())[:_MOST_WORDS].rstrip(". ")
    return said or type(error).__name__


def _info(filesystem: Any, path: str) -> Mapping[str, Any] | None:
    """The store's information about a path, None when there is nothing. `exists` would hide every other error."""
    try:
        found: Mapping[str, Any] = filesystem.info(path)
    except FileNotFoundError:
        return None
    return found


def _listing(filesystem: Any, root: str, shown: str) -> dict[str, int]:
    """Size in bytes by name below `root`; a single file has the name ""."""
    found = _info(filesystem, root)
    if found is None:
        raise NotFound("no-such-data", f"There is nothing at {shown}.")
    if found["type"] == "file":
        return {"": int(found["size"])}
    sizes: dict[str, int] = {}
    if not root.strip("/") and is_object_store(filesystem):
        raise InvalidInput("bad-uri", f"{shown} names no bucket.")
    for path, info in _walk(filesystem, root):
        if path.endswith(_PART):
            continue
        relative = posixpath.relpath(path, root)
        if info.get("islink") and not _stays_inside(filesystem, root, path):
            raise InvalidInput("link-outside", f"{relative} in {shown} is a link that leads outside; copy its target.")
        sizes[relative] = int(info["size"])
    return sizes


def _walk(filesystem: Any, root: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every file below a folder. fsspec's own walk silently skips folders that it cannot list."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            listing = filesystem.ls(folder, detail=True)
        except FileNotFoundError:  # gone meanwhile, or only a store's marker of a folder
            continue
        for info in listing:
            path = info["name"].rstrip("/")
            if path == folder.rstrip("/"):  # a store's marker of the folder itself
                continue
            if info["type"] == "directory":
                waiting.append(path)
            else:
                yield path, info


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
    info = _info(to_fs, target)
    if info is None or info["type"] != "file" or int(info["size"]) != size:
        return False
    here, there = _changed(from_fs.info(source)), _changed(info)
    return here is None or there is None or there >= here


def _changed(info: Mapping[str, Any]) -> float | None:
    """The modification time of a file in seconds since 1970; None where the store does not tell."""
    if isinstance(found := info.get("mtime"), int | float):
        return float(found)
    if isinstance(found := info.get("LastModified"), datetime):
        return found.timestamp()
    milliseconds = info.get("modification_time", info.get("modificationTime"))
    return milliseconds / 1000 if isinstance(milliseconds, int | float) else None


def _copy(from_fs: Any, source: str, to_fs: Any, target: str) -> None:
    if is_object_store(to_fs):
        _put(from_fs, source, to_fs, target)
        return
    to_fs.makedirs(posixpath.dirname(target), exist_ok=True)
    part = f"{target}{_PART}"
    found = _info(to_fs, part)
    begun = int(found["size"]) if found is not None else 0
    resumable = 0 < begun <= int(from_fs.size(source)) and _older(from_fs, source, to_fs, part)
    with from_fs.open(source, "rb") as reader, to_fs.open(part, "ab" if resumable else "wb") as writer:
        if resumable:
            reader.seek(begun)
        while chunk := reader.read(_CHUNK):
            writer.write(chunk)
    to_fs.mv(part, target)


def _keep_time(from_fs: Any, source: str, to_fs: Any, target: str) -> None:
    changed = _changed(from_fs.info(source))
    if changed is not None and isinstance(to_fs, fsspec.implementations.local.LocalFileSystem):
        os.utime(target, (changed, changed))


def _put(from_fs: Any, source: str, to_fs: Any, target: str) -> None:
    """Write a whole object or none. Closing it after an error, as `with` does, would store a partial object."""
    with from_fs.open(source, "rb") as reader:
        writer = to_fs.open(target, "wb")
        try:
            shutil.copyfileobj(reader, writer, _CHUNK)
        except BaseException:
            writer.closed = True
            writer.discard()
            raise
        writer.close()


def is_object_store(filesystem: Any) -> bool:
    """Whether this is an object store: files are there whole or not at all, without folders or renames."""
    protocols = filesystem.protocol
    return not set(_OBJECTS).isdisjoint({protocols} if isinstance(protocols, str) else protocols)


def _older(from_fs: Any, source: str, to_fs: Any, part: str) -> bool:
    """Whether the source has not changed since the part was written."""
    here, there = _changed(from_fs.info(source)), _changed(to_fs.info(part))
    return here is not None and there is not None and here <= there
