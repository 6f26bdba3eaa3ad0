"""Copy what is new in the event files of a remote folder to a local one: bounded, for the runtime of a task."""

from __future__ import annotations

import os
import posixpath
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from corral.kernel.errors import CorralError, Unavailable
from corral.runtime.event_folder import DEEPEST, MARK, MOST_ENTRIES, MOST_FILES
from corral.storage.staging import changed_at, place, words_of

MOST_BYTES: Final = 4 << 20
"""Bytes that one call copies."""
MOST_KEPT: Final = 64 << 20
"""Bytes of all local copies of a folder; what is written after them is left out."""


class _Remote(NamedTuple):
    """A remote event file."""

    path: str
    below: str
    size: int
    changed: float | None


def mirror(source: str, folder: Path, since: float) -> int:
    """Append to the copies in `folder` what was written to event files at a URI; the number of bytes.

    Files that have not changed after `since` are begun by no call. A file that is shorter than its copy was written
    anew, and its copy, too.

    Raises InvalidInput for a scheme that is not allowed, Unavailable when the store fails.
    """
    filesystem, root = place(source)
    try:
        return _mirrored(filesystem, root, folder, since)
    except CorralError:
        raise
    except FileNotFoundError:
        return 0  # the task has not written yet
    except Exception as error:  # each library has errors of its own
        raise Unavailable("storage-unavailable", f"{source} could not be read: {words_of(error)}.") from error


def _mirrored(filesystem: Any, root: str, folder: Path, since: float) -> int:
    copied = 0
    kept = _size_of(folder)
    files = 0
    for each in _event_files(filesystem, root):
        copy = folder / each.below
        have = copy.stat().st_size if copy.exists() else -1
        if have < 0 and each.changed is not None and each.changed <= since:
            continue
        files += 1
        room = min(MOST_BYTES - copied, MOST_KEPT - kept - copied)
        if files > MOST_FILES or room <= 0:
            break
        if each.size < have:
            copy.unlink()
        begin = have if 0 < have <= each.size else 0
        end = min(each.size, begin + room)
        if end <= begin:
            continue
        data = filesystem.cat_file(each.path, start=begin, end=end)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with open(copy, "ab") as file:
            file.write(data)
        copied += len(data)
    return copied


def is_full(folder: Path) -> bool:
    """Whether the copies in a folder are as large as they may be."""
    return _size_of(folder) >= MOST_KEPT


def _size_of(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def _event_files(filesystem: Any, root: str) -> Iterator[_Remote]:
    """Yield the event files of a folder, those in the upper folders first."""
    left, waiting = MOST_ENTRIES, deque([""])
    while waiting:
        below = waiting.popleft()
        for info in sorted(filesystem.ls(posixpath.join(root, below), detail=True), key=lambda each: each["name"]):
            left -= 1
            if left < 0:
                return
            name = posixpath.basename(str(info["name"]).rstrip("/"))
            path = posixpath.join(below, name)
            if not _is_plain(name):
                continue
            if info["type"] == "directory" and path.count("/") < DEEPEST:
                waiting.append(path)
            elif info["type"] == "file" and MARK in name:
                yield _remote(info, path)


def _remote(info: Mapping[str, Any], below: str) -> _Remote:
    return _Remote(str(info["name"]), below, int(info["size"] or 0), changed_at(info))


def _is_plain(name: str) -> bool:
    return bool(name) and not name.startswith(".") and name.isprintable() and os.sep not in name and len(name) <= 255
