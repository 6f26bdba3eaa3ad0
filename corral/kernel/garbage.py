"""Why: what is built in bulk and stays should not be searched for garbage, and what a start leaves should not be kept."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
