"""Why: while hundreds of thousands of objects are built that all stay, looking for garbage among them costs most time."""

from __future__ import annotations

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
