"""Wait for changes of files with inotify, so that log followers need not poll.

One inotify instance serves a whole event loop, because a user may have only 128. Python's library has no binding; three
calls of the C library suffice.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import weakref
from itertools import chain

MODIFY, ATTRIB, MOVED_TO, CREATE = 0x2, 0x4, 0x80, 0x100
_EVENT = struct.Struct("iIII")
_LIBC = ctypes.CDLL(None, use_errno=True)


class Watcher:
    """Wakes tasks that wait for a file or folder to change."""

    def __init__(self) -> None:
        """Raises OSError when the user has no inotify instance left."""
        self._handle = _checked(_LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._waiting: dict[int, set[asyncio.Event]] = {}
        asyncio.get_running_loop().add_reader(self._handle, self._wake)
        weakref.finalize(self, os.close, self._handle)

    def watch(self, path: str, mask: int = MODIFY | ATTRIB) -> Watch:
        """Start a watch; the same file may be watched several times.

        Raises OSError when the file does not exist or the user has no watches left.
        """
        number = _checked(_LIBC.inotify_add_watch(self._handle, os.fsencode(path), mask))
        event = asyncio.Event()
        self._waiting.setdefault(number, set()).add(event)
        return Watch(self, number, event)

    def drop(self, number: int, event: asyncio.Event) -> None:
        """End one watch."""
        events = self._waiting.get(number, set())
        events.discard(event)
        if not events and self._waiting.pop(number, None) is not None:
            _LIBC.inotify_rm_watch(self._handle, number)  # fails only when the file was deleted before

    def _wake(self) -> None:
        try:
            raw = os.read(self._handle, 65536)
        except BlockingIOError:
            return
        at = 0
        while at < len(raw):
            number, _, _, length = _EVENT.unpack_from(raw, at)
            at += _EVENT.size + length
            lost = number < 0  # the kernel's queue overflowed: any file may have changed
            for event in chain(*self._waiting.values()) if lost else self._waiting.get(number, ()):
                event.set()


class Watch:
    """One watch of one file; `changed` is set at each change."""

    def __init__(self, watcher: Watcher, number: int, changed: asyncio.Event) -> None:
        self._watcher = watcher
        self._number = number
        self.changed = changed

    def close(self) -> None:
        """End the watch."""
        self._watcher.drop(self._number, self.changed)


_watchers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Watcher] = weakref.WeakKeyDictionary()


def watcher() -> Watcher:
    """The running loop's watcher.

    Raises OSError when the user has no inotify instance left.
    """
    loop = asyncio.get_running_loop()
    found = _watchers.get(loop)
    if found is None:
        found = _watchers[loop] = Watcher()
    return found


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
