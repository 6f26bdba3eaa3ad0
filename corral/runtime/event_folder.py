"""Follow the event files of a folder that somebody else may write: bounded, and never out of the folder.

Folders and files are opened by their names below the one that is open, and no link is followed. What is no regular
file, has a second name, or lies on another file system is passed over.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from corral.runtime.event_records import HEADER, BrokenRecord, data_of, header_at
from corral.runtime.event_scalars import Scalar, is_name, scalars_of, time_of

MARK: Final = "tfevents"
"""What the names of event files contain; TensorBoard finds them by it, too."""
MOST_FILES: Final = 32
MOST_ENTRIES: Final = 2000
"""Entries of all folders that are looked through for files in one look."""
DEEPEST: Final = 5
"""Folders below each other."""
MOST_CURVES: Final = 64
"""Curves of one folder; those with further tags are left out."""
LONGEST_DECODED: Final = 64 * 1024
"""Bytes of a record that is decoded. Longer ones have pictures or graphs, and are passed over."""
_AT_ONCE: Final = 256 * 1024
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Point(NamedTuple):
    """A value of a curve."""

    run: str
    """The folder of its file, below the one that is followed; "" is that one itself."""
    scalar: Scalar


class Allowance:
    """What may be read until the next look; it is shared by all folders."""

    def __init__(self, bytes: int, events: int) -> None:
        self.bytes, self.events = bytes, events

    @property
    def over(self) -> bool:
        """Whether nothing more may be read."""
        return self.bytes <= 0 or self.events <= 0


class _File:
    """How far one file was read."""

    def __init__(self, inode: int) -> None:
        self.inode, self.at, self.size, self.broken = inode, 0, 0, ""


class EventFolder:
    """Reads what has been written to the event files of one folder since the last look."""

    def __init__(self, path: str, below: str = "", *, everybody: bool = False) -> None:
        """Its last part may be no link, and no part of the path `below` it; nothing is read yet.

        With `everybody` only what everybody may read is, because who follows it may read more than who writes it.
        """
        self._path, self._everybody = path, everybody
        self._below = tuple(part for part in below.split("/") if part)
        self._files: dict[tuple[str, str], _File] = {}
        self._curves: set[tuple[str, str]] = set()
        self.left_out = 0
        """Scalars that were left out since their tag is one too many."""

    def look(self, since: float, allowance: Allowance) -> list[Point]:
        """Return the scalars that were written at a time after `since`, as far as it may read."""
        points: list[Point] = []
        try:
            handle = os.open(self._path, _FOLDER)
        except OSError:  # it has no folder of its own, or none any more
            return points
        try:
            for run, name, folder, found in self._event_files(handle):
                file = self._files.get((run, name))
                if file is None and len(self._files) >= MOST_FILES:
                    continue
                if file is None or file.inode != found.st_ino or found.st_size < file.size:
                    file = self._files[run, name] = _File(found.st_ino)
                file.size = found.st_size
                if found.st_mtime <= since:  # nothing in it is of a later time
                    continue
                if file.at < found.st_size and not file.broken and not allowance.over:
                    points += self._kept(run, _read(folder, name, file, since, allowance))
        finally:
            os.close(handle)
        return points

    def _event_files(self, top: int) -> Iterator[tuple[str, str, int, os.stat_result]]:
        with _opened(top, self._below, self._everybody) as handle:
            if handle is not None:
                yield from _event_files(handle, self._everybody)

    def broken(self) -> list[str]:
        """What is wrong with files of which nothing more is read."""
        return [file.broken for file in self._files.values() if file.broken]

    def _kept(self, run: str, scalars: Iterator[Scalar]) -> Iterator[Point]:
        for scalar in scalars:
            curve = run, scalar.tag
            if curve not in self._curves:
                if len(self._curves) >= MOST_CURVES:
                    self.left_out += 1
                    continue
                self._curves.add(curve)
            yield Point(run, scalar)


def _event_files(top: int, everybody: bool) -> Iterator[tuple[str, str, int, os.stat_result]]:
    """Yield run, name, open folder and state of each event file; the folder is closed when the next one is asked for.

    Those in the upper folders come first. Folders whose names begin with a dot are passed over.
    """
    left, device = MOST_ENTRIES, os.fstat(top).st_dev
    waiting = deque[tuple[str, ...]]([()])
    while waiting:
        parts = waiting.popleft()
        with _opened(top, parts, everybody) as handle:
            for entry in _entries(handle):
                left -= 1
                if left < 0:
                    return
                found = _state(entry)
                if found is None or found.st_dev != device or (everybody and not found.st_mode & stat.S_IROTH):
                    continue
                if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and MARK in entry.name and handle is not None:
                    yield "/".join(parts), entry.name, handle, found
                elif stat.S_ISDIR(found.st_mode) and _is_run(below := (*parts, entry.name)):
                    waiting.append(below)


def _is_run(parts: Sequence[str]) -> bool:
    return len(parts) <= DEEPEST and not parts[-1].startswith(".") and is_name("/".join(parts))


@contextlib.contextmanager
def _opened(top: int, parts: Sequence[str], everybody: bool = False) -> Iterator[int | None]:
    """Open the folder below `top` that has this path; None if it is gone, or a part of its path is a link by now.

    With `everybody` also None if not everybody may enter it.
    """
    handle = os.dup(top)
    try:
        for part in parts:
            below = os.open(part, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = below
            if everybody and not os.fstat(handle).st_mode & stat.S_IXOTH:
                raise PermissionError
    except OSError:
        os.close(handle)
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def _entries(handle: int | None) -> list[os.DirEntry[str]]:
    """The first entries of a folder by name, so that each look finds the same."""
    if handle is None:
        return []
    try:
        with os.scandir(handle) as found:
            return sorted(islice(found, MOST_ENTRIES + 1), key=lambda each: each.name)
    except OSError:
        return []


def _state(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _read(folder: int, name: str, file: _File, since: float, allowance: Allowance) -> Iterator[Scalar]:
    """Yield the scalars of a file from where it was read to, as far as it is written and may be read."""
    try:
        handle = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_ino != file.inode:  # another one took its place
            return
        while not allowance.over:
            data = os.pread(handle, _AT_ONCE, file.at)
            begun = file.at
            yield from _records(data, file, since, allowance)
            allowance.bytes -= len(data)
            if file.at == begun:  # the rest is not written yet
                return
    except (OSError, BrokenRecord) as error:
        file.broken = str(error)
    finally:
        os.close(handle)


def _records(data: bytes, file: _File, since: float, allowance: Allowance) -> Iterator[Scalar]:
    """Yield the scalars of the whole records at the beginning of some bytes. Raises BrokenRecord."""
    at = 0
    while not allowance.over and (header := header_at(data, at)) is not None:
        whole = header.whole
        if header.length > LONGEST_DECODED:
            file.at += whole
            return  # what comes next is read from there
        record = data[at : at + whole]
        if len(record) < whole:
            return
        at += whole
        file.at += whole
        when = time_of(record[HEADER:])
        if when is not None and when <= since:
            continue
        allowance.events -= 1
        content = data_of(record)
        if content is not None:
            yield from (each for each in scalars_of(content) if each.at > since)
