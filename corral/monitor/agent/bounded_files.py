"""Read small files of the kernel's: a file that is missing, closed or of a gone process is an empty one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

MOST_BYTES: Final = 2**20
"""Bytes of one file that are read."""


def read_bytes(path: str, most: int = MOST_BYTES) -> bytes:
    """Return the first bytes of a file, b"" if it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        found = os.read(handle, most)
        while len(found) < most and (more := os.read(handle, most - len(found))):
            found += more
        return found
    except OSError:
        return b""
    finally:
        os.close(handle)


def read_text(path: str, most: int = MOST_BYTES) -> str:
    """Return the beginning of a file as text, "" if it cannot be read."""
    return read_bytes(path, most).decode("utf-8", "replace")


def read_number(path: str) -> int | None:
    """Return the whole number that a file holds; None if it has none, such as `max`."""
    return whole(read_text(path, 64))


def whole(text: str) -> int | None:
    """Return a whole number; None for anything else."""
    text = text.strip()
    return int(text) if text.isascii() and text.lstrip("-").isdigit() and len(text) < 20 else None


def numbers(lines: Iterable[str], *names: str) -> dict[str, int]:
    """Return the numbers of lines such as `rss 4096` or `MemFree:  12 kB`, of these names (all, if none is given)."""
    found: dict[str, int] = {}
    for line in lines:
        words = line.replace(":", " ", 1).split(None, 2)
        if len(words) > 1 and (not names or words[0] in names) and (value := whole(words[1])) is not None:
            found[words[0]] = value
    return found
