"""Copy a task's inputs and outputs between local folders and storages, with fsspec.

A file or a whole tree is copied, several files at once, because a store takes longer to answer than to move a small one.
Each file is written under another name and renamed, so an existing file is complete; an object store shows no file before
it is complete. A second run copies only files that are missing, differ in size or are older than their source, and
continues a partly copied file. Links that lead out of a tree are refused, and no name
can lead outside the destination. Endpoints and credentials come from the environment variables of the libraries
(`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, `HADOOP_CONF_DIR` …).
"""

from __future__ import annotations

import os
import posixpath
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from threading import Lock, Semaphore
from typing import Any, NamedTuple, TextIO

from corral.kernel.errors import CorralError, InvalidInput, NotFound, Unavailable
from corral.storage import hdfs

SCHEMES = {"file": "", "s3": "s3", "hdfs": "hdfs", "webhdfs": "hdfs", "swebhdfs": "hdfs"}
"""The schemes that can be staged, each with the extra of Corral that installs its library."""
_OBJECTS = ("s3", "s3a")
"""Protocols of object stores: a file is there whole or not at all, and there are no folders."""
_CHUNK = 4 << 20
_EVERY = 5.0
_PART = ".corral-part"
_AT_ONCE = 8
"""Large files that are copied at once. More did not copy faster to a NameNode and a DataNode on two cores."""
_SMALL = 1 << 20
"""Bytes up to which a file is small."""
_SMALL_AT_ONCE = 64
"""Files that are copied at once. A small one mostly waits: HDFS closes it when its DataNode has told of it, and hdfs-native
asks again after half a second.
"""
_SLICE = 1000
"""Files that wait for a thread at most; a tree may have millions."""
_FEW = 8
"""Files of one folder up to which each is looked for by itself: a listing also has all others that are there."""
_Info = Mapping[str, Any]
_MOST_WORDS = 500
"""Characters of a library's error message that are passed on."""


@dataclass
class Done:
    """The files and bytes that were staged, and the number of files that were there already."""

    files: int = 0
    bytes: int = 0
    kept: int = 0


class _File(NamedTuple):
    """One file to stage."""

    source: str
    target: str
    info: _Info
    """The store's information about the source."""
    there: _Info | None
    """The same about the target, None when it is not there."""
    part: _Info | None
    """The same about the beginning of an earlier copy."""

    @property
    def size(self) -> int:
        """The size of the source in bytes."""
        return int(self.info["size"])


class Progress:
    """Prints a line every five seconds, so that a log shows the progress of a long copy, and notes the last answer."""

    def __init__(self, to: TextIO) -> None:
        self._to = to
        self._next = time.monotonic() + _EVERY
        self._answered = time.monotonic()
        self._lock = Lock()
        self._bounded = 0

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Count no silence while the block runs: its call to a storage ends by itself, and may rightly take long.

        A library of object stores moves up to 50 MiB for one call, of several files at once. It gives up a storage that is
        silent after some minutes.
        """
        with self._lock:
            self._bounded += 1
        try:
            yield
        finally:
            self.answered()
            with self._lock:
                self._bounded -= 1

    def answered(self) -> None:
        """Note that a storage has answered a question, or taken or given bytes."""
        self._answered = time.monotonic()

    @property
    def silent_seconds(self) -> float:
        """Seconds since a storage has answered."""
        return 0.0 if self._bounded else time.monotonic() - self._answered

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
    done, large = Done(), Semaphore(_AT_ONCE)

    def move(file: _File) -> bool:
        if _is_there(file):
            return False
        with large if file.size > _SMALL else nullcontext():
            _copy(from_fs, file.source, to_fs, file.target, progress, size=file.size, begun=_begun(file))
        if keep_times:
            _keep_time(file, to_fs)
        progress.answered()
        return True

    try:
        files = _files(_listing(from_fs, from_root, source, progress), from_root, to_fs, to_root, progress)
        total = sum(file.size for file in files)
        with ThreadPoolExecutor(_SMALL_AT_ONCE, thread_name_prefix="staging") as threads:
            _make_folders(to_fs, files, threads, progress)
            for begin in range(0, len(files), _SLICE):
                these = files[begin : begin + _SLICE]
                for file, moved in zip(these, threads.map(move, these), strict=True):
                    done.bytes += file.size
                    done.files += moved
                    done.kept += not moved
                    progress.at(done, len(files), total)
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
        filesystem, path = hdfs.place(text) if scheme in hdfs.SCHEMES else _opened(text, options)
    except ImportError:
        message = f"{scheme}: needs a library that is not installed here: pip install 'corral[{SCHEMES[scheme]}]'."
        raise InvalidInput("storage-library-missing", message) from None
    except Exception as error:
        raise Unavailable("storage-unavailable", f"{text} could not be opened: {words_of(error)}.") from error
    return filesystem, str(path)


def _opened(text: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """What fsspec makes of a path or URI; it is loaded here, as a server without remote storages does without it."""
    from fsspec.core import url_to_fs

    found: tuple[Any, str] = url_to_fs(text, **options)
    return found


def _is_local(filesystem: Any) -> bool:
    from fsspec.implementations.local import LocalFileSystem

    return isinstance(filesystem, LocalFileSystem)


def words_of(error: Exception) -> str:
    """A library's error message in one line."""
    said = hdfs.plain_words(str(error).strip())[:_MOST_WORDS].rstrip(". ")
    return said or type(error).__name__


def _info(filesystem: Any, path: str) -> _Info | None:
    """The store's information about a path, None when there is nothing. `exists` would hide every other error."""
    try:
        found: _Info = filesystem.info(path)
    except FileNotFoundError:
        return None
    return found


def _listing(filesystem: Any, root: str, shown: str, progress: Progress) -> dict[str, _Info]:
    """The store's information by name below `root`; a single file has the name ""."""
    found = _info(filesystem, root)
    if found is None:
        raise NotFound("no-such-data", f"There is nothing at {shown}.")
    if found["type"] == "file":
        return {"": found}
    files: dict[str, _Info] = {}
    if not root.strip("/") and is_object_store(filesystem):
        raise InvalidInput("bad-uri", f"{shown} names no bucket.")
    for path, info in _walk(filesystem, root, progress):
        if path.endswith(_PART):
            continue
        relative = posixpath.relpath(path, root)
        if info.get("islink") and not _stays_inside(filesystem, root, path):
            raise InvalidInput("link-outside", f"{relative} in {shown} is a link that leads outside; copy its target.")
        files[relative] = info
    return files


def _files(found: Mapping[str, _Info], from_root: str, to_fs: Any, to_root: str, progress: Progress) -> list[_File]:
    """The files of a listing with what is at their targets now."""
    targets = {name: _inside(to_root, name) for name in found}
    there = _existing(to_fs, targets.values(), progress)
    return [
        _File(
            posixpath.join(from_root, name) if name else from_root,
            target,
            found[name],
            there.get(target),
            there.get(f"{target}{_PART}"),
        )
        for name, target in targets.items()
    ]


def _existing(filesystem: Any, targets: Iterable[str], progress: Progress) -> dict[str, _Info]:
    """The store's information about those of the targets, and parts of them, that are there."""
    folders: dict[str, list[str]] = {}
    for target in targets:
        folders.setdefault(posixpath.dirname(target), []).append(target)
    there: dict[str, _Info] = {}
    for folder, names in folders.items():
        progress.answered()
        if len(names) <= _FEW:
            looked = [(path, _info(filesystem, path)) for name in names for path in (name, f"{name}{_PART}")]
            there |= {path: info for path, info in looked if info is not None}
            continue
        try:
            listing = filesystem.ls(folder, detail=True)
        except FileNotFoundError:
            continue
        there |= {posixpath.join(folder, posixpath.basename(info["name"].rstrip("/"))): info for info in listing}
    return there


def _make_folders(filesystem: Any, files: Iterable[_File], threads: ThreadPoolExecutor, progress: Progress) -> None:
    """Make the folders of all files that are not there."""

    def make(folder: str) -> None:
        filesystem.makedirs(folder, exist_ok=True)
        progress.answered()

    if not is_object_store(filesystem):
        folders = {posixpath.dirname(file.target) for file in files if file.there is None}
        list(threads.map(make, sorted(folders)))


def _walk(filesystem: Any, root: str, progress: Progress) -> Iterator[tuple[str, _Info]]:
    """Every file below a folder. fsspec's own walk silently skips folders that it cannot list."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            listing = filesystem.ls(folder, detail=True)
        except FileNotFoundError:  # gone meanwhile, or only a store's marker of a folder
            continue
        progress.answered()
        for info in listing:
            path = info["name"].rstrip("/")
            if path == folder.rstrip("/"):  # a store's marker of the folder itself
                continue
            if info["type"] == "directory":
                waiting.append(path)
            else:
                yield path, info


def _stays_inside(filesystem: Any, root: str, path: str) -> bool:
    if not _is_local(filesystem):
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


def _is_there(file: _File) -> bool:
    """Whether the target is a file of the same size that is not older."""
    if file.there is None or file.there["type"] != "file" or int(file.there["size"]) != file.size:
        return False
    here, there = changed_at(file.info), changed_at(file.there)
    return here is None or there is None or there >= here


def _begun(file: _File) -> int:
    """The bytes that an earlier copy has written, if the source has not changed since; else 0."""
    if file.part is None or int(file.part["size"]) > file.size:
        return 0
    here, there = changed_at(file.info), changed_at(file.part)
    return int(file.part["size"]) if here is not None and there is not None and here <= there else 0


def changed_at(info: _Info) -> float | None:
    """The modification time of a file in seconds since 1970; None where the store does not tell."""
    if isinstance(found := info.get("mtime"), int | float):
        return float(found)
    if isinstance(found := info.get("LastModified"), datetime):
        return found.timestamp()
    milliseconds = info.get("modification_time", info.get("modificationTime"))
    return milliseconds / 1000 if isinstance(milliseconds, int | float) else None


_UNWATCHED = Progress(sys.stderr)
"""For copies at whose silence nothing looks."""


def _copy(
    from_fs: Any,
    source: str,
    to_fs: Any,
    target: str,
    progress: Progress = _UNWATCHED,
    *,
    size: int = 0,
    begun: int = 0,
) -> None:
    """Copy a file of `size` bytes, of which the first `begun` are in the part already."""
    if is_object_store(to_fs):
        _put(from_fs, source, to_fs, target, progress)
        return
    part = f"{target}{_PART}"
    copied = begun
    with from_fs.open(source, "rb") as reader, to_fs.open(part, "ab" if begun else "wb") as writer:
        if begun:
            reader.seek(begun)
        large = isinstance(reader, hdfs.StreamedFile) and size > _SMALL
        for chunk in reader.pieces() if large else _chunks(from_fs, reader, progress):
            writer.write(chunk)
            copied += len(chunk)
            progress.answered()
    if copied < size:
        raise OSError(f"{copied} bytes came of {size}")
    to_fs.mv(part, target)


def _chunks(filesystem: Any, reader: Any, progress: Progress) -> Iterator[bytes]:
    """What is left of a file of this file system."""
    while True:
        with progress.bounded() if is_object_store(filesystem) else nullcontext():
            chunk: bytes = reader.read(_CHUNK)
        if not chunk:
            return
        yield chunk


def _keep_time(file: _File, to_fs: Any) -> None:
    changed = changed_at(file.info)
    if changed is not None and _is_local(to_fs):
        os.utime(file.target, (changed, changed))


def _put(from_fs: Any, source: str, to_fs: Any, target: str, progress: Progress) -> None:
    """Write a whole object or none. Closing it after an error, as `with` does, would store a partial object."""
    with from_fs.open(source, "rb") as reader:
        writer = to_fs.open(target, "wb")
        try:
            for chunk in _chunks(from_fs, reader, progress):
                with progress.bounded():
                    writer.write(chunk)
        except BaseException:
            writer.closed = True
            writer.discard()
            raise
        with progress.bounded():
            writer.close()


def is_object_store(filesystem: Any) -> bool:
    """Whether this is an object store: files are there whole or not at all, without folders or renames."""
    protocols = filesystem.protocol
    return not set(_OBJECTS).isdisjoint({protocols} if isinstance(protocols, str) else protocols)
