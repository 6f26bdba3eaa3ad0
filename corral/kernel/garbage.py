"""What is built in bulk and stays is not searched for garbage, and memory that is free goes back to the system."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024
_GROWN = 4 << 20
"""Bytes above its least size from which a process is trimmed."""
_WORTH = 1 << 20
"""Bytes; after a trim that gave less, twice as many looks pass before the next one."""
_REST = 16
"""Looks that pass between two trims at most."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection inside the block, if there was any before: for what is built there and kept, within seconds."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def give_back() -> None:
    """Collect what a start has left, and return its pages to the system where the C library can."""
    gc.collect()
    _trim()


def map_large_blocks() -> None:
    """Have large blocks go back to the system as soon as they are free.

    Unless it is told, glibc keeps what is smaller than the largest block that was ever freed (up to 32 MB): 60 requests
    of 1 MB at once left 60 MB behind.
    """
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    if option is not None:
        option(_M_MMAP_THRESHOLD, _LARGE)


class Slack:
    """Returns free memory to the system while a process is larger than it was; `look` is cheap and called now and then.

    What is freed after a load has ended goes back too, at the next look, and not only when the process grows again.
    """

    def __init__(self) -> None:
        self._least = _resident()
        self._rest = self._passed = 0

    def look(self) -> None:
        """Trim the heap where the process has 4 MiB more than it had when it was smallest.

        Where that gives nothing, what it has more is in use: the next trims are then ever rarer.
        """
        before = _resident()
        self._least = min(self._least, before)
        self._passed += 1
        if before <= self._least + _GROWN or self._passed <= self._rest:
            return
        _trim()
        after = _resident()
        worth = before - after >= _WORTH
        self._rest, self._passed = 0 if worth else min(2 * self._rest + 1, _REST), 0


def _resident() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE
    except OSError:
        return 0


def _trim() -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
