"""How much the working folders of tasks hold; no quota of the file system is needed for that."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Mapping

SECONDS = 30.0
_ENTRIES = 100_000
"""So many entries of a folder are looked at before others have their turn, and the rest the next time: a task with
millions of files costs the server little of its processor, and hides nothing behind them."""
_PENDING = 100_000
"""So many folders, and files of several names, are kept in mind: what a task makes more of is not looked into."""
_BLOCK = 512


class Walk:
    """Counts what the files of a folder take on its own file system, each once, in as many looks as it needs.

    A folder that changes meanwhile, or is gone, counts as far as it could be read.
    """

    def __init__(self, folder: str) -> None:
        self.held = 0
        """Bytes of the disk that were counted."""
        self.over = False
        """Whether all of it was looked at."""
        self._sizes = _sizes(folder)

    def look(self, enough: int) -> int:
        """Go on, at most until `enough` bytes are counted; how many are."""
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
        """Leave it."""
        self._sizes.close()


def over_limit(folders: Mapping[str, str], limit: int, walks: dict[str, Walk]) -> list[str]:
    """The names of those folders, by path, that hold more than `limit` bytes; `walks` are those that go on."""
    for name in walks.keys() - folders.keys():
        walks.pop(name).close()
    over = []
    for name, path in folders.items():
        walk = walks.pop(name, None) or Walk(path)
        if walk.look(limit) > limit:
            over.append(name)
        if walk.over or name in over:
            walk.close()
        else:
            walks[name] = walk
    return over


def _sizes(folder: str) -> Generator[int]:
    """What each entry below a folder takes; 0 for what does not count."""
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
    """What one entry takes; a folder is added to those that are still to be looked at."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return 0  # it is gone already
    if status.st_dev != device or (status.st_nlink > 1 and status.st_ino in seen):
        return 0
    if entry.is_dir(follow_symlinks=False):
        if len(folders) < _PENDING:
            folders.append(entry.path)
    elif status.st_nlink > 1 and len(seen) < _PENDING:
        seen.add(status.st_ino)
    return status.st_blocks * _BLOCK
