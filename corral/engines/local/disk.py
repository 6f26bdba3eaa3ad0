"""Measure the disk use of tasks' working folders, without a file system quota."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Mapping

SECONDS = 30.0
_ENTRIES = 100_000
"""Entries examined per turn of a folder, before other folders have theirs.

So a task with millions of files costs the server little CPU and hides nothing behind them.
"""
_PENDING = 100_000
"""Folders, and files with several names, that are remembered. More of a task's are not examined."""
_BLOCK = 512


class DiskUsageScan:
    """Sums the disk use of a folder's files on its own file system, each once, over several turns.

    A folder that changes or vanishes meanwhile counts as far as it could be read.
    """

    def __init__(self, folder: str) -> None:
        self.held = 0
        """The bytes of disk counted so far."""
        self.over = False
        """Whether everything was examined."""
        self._sizes = _sizes(folder)

    def look(self, enough: int) -> int:
        """Go on, at most until `enough` bytes are counted. Return the bytes so far."""
        for _ in range(_ENTRIES):
            size = next(self._sizes, None)
            if size is None:
                self.over = True
                break
            self.held += size
            if self.held > enough:
                break
        return self.held

    def close(self) -> None:
        """Stop the walk."""
        self._sizes.close()


def over_limit(folders: Mapping[str, str], limit: int, walks: dict[str, DiskUsageScan]) -> list[str]:
    """Return the names of folders (name to path) that hold more than `limit` bytes. `walks` keeps unfinished walks."""
    for name in walks.keys() - folders.keys():
        walks.pop(name).close()
    over = []
    for name, path in folders.items():
        walk = walks.pop(name, None) or DiskUsageScan(path)
        if walk.look(limit) > limit:
            over.append(name)
        if walk.over or name in over:
            walk.close()
        else:
            walks[name] = walk
    return over


def _sizes(folder: str) -> Generator[int]:
    """Yield the disk use of each entry below a folder; 0 for entries that do not count."""
    seen, folders = set[int](), [folder]
    try:
        device = os.lstat(folder).st_dev
    except OSError:
        return
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as found:
            for entry in found:
                yield _size(entry, device, seen, folders)


def _size(entry: os.DirEntry[str], device: int, seen: set[int], folders: list[str]) -> int:
    """Return one entry's disk use. A folder is added to `folders`, to be examined later."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return 0  # already gone
    if status.st_dev != device or (status.st_nlink > 1 and status.st_ino in seen):
        return 0
    if entry.is_dir(follow_symlinks=False):
        if len(folders) < _PENDING:
            folders.append(entry.path)
    elif status.st_nlink > 1 and len(seen) < _PENDING:
        seen.add(status.st_ino)
    return status.st_blocks * _BLOCK
