"""Control garbage collection of bulk data, and return freed memory to the operating system."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024
_RARELY = 100
"""How many times as many new objects a collection waits for where most of them are kept."""
_rare_blocks: list[int] = []
"""Within a block of `rarely_collected`, what its end sets again."""
_usual: list[tuple[int, int, int]] = []
"""Between `collect_rarely` and `give_back`, what the latter sets again."""
_GROWN = 4 << 20
"""Growth in bytes above the smallest size from which the process is trimmed."""
_WORTH = 1 << 20
"""Bytes that a trim must free; after less, the number of skipped looks doubles."""
_REST = 16
"""The most looks that are skipped between two trims."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection in the block, if it was enabled: for data built there, within seconds, and kept."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Collect garbage a hundred times as rarely in the block: for work that keeps most of what it makes.

    The collections of a simulation of many jobs look through all of them again and again, and find next to nothing. A
    block within another one changes nothing: its end would be followed by a collection.
    """
    if _rare_blocks:
        yield
        return
    youngest, *older = gc.get_threshold()
    gc.set_threshold(_RARELY * youngest, *older)
    _rare_blocks.append(youngest)
    try:
        yield
    finally:
        _rare_blocks.clear()
        gc.set_threshold(youngest, *older)


def collect_rarely() -> None:
    """Collect garbage a hundred times as rarely until `give_back`: what a start makes is modules, which are kept."""
    if not _usual:
        _usual.append(gc.get_threshold())
        youngest, *older = _usual[0]
        gc.set_threshold(_RARELY * youngest, *older)


def give_back() -> None:
    """Collect the garbage of a start, and return its pages to the system if the C library can."""
    if _usual:
        gc.set_threshold(*_usual.pop())
    gc.collect()
    _trim()


def map_large_blocks() -> None:
    """Make large blocks return to the system as soon as they are free.

    By default, glibc keeps freed memory below the size of the largest block ever freed (up to 32 MB): 60 parallel
    requests of 1 MB left 60 MB behind.
    """
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    if option is not None:
        option(_M_MMAP_THRESHOLD, _LARGE)


class Slack:
    """Return freed memory to the system while the process is above its smallest size.

    Call `look` regularly; it is cheap. Memory that is freed after a load goes back at the next look, and not only when
    the process grows again.
    """

    def __init__(self) -> None:
        self._least = _resident()
        self._rest = self._passed = 0

    def look(self) -> None:
        """Trim the heap if the process is more than 4 MiB above its smallest size.

        If a trim frees little, the memory is in use, and the next trims become rarer.
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
