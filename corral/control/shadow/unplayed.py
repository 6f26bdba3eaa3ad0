"""The records of a journal that were read ahead and are not replayed yet."""

from __future__ import annotations

import zlib
from collections import deque
from typing import Final

import msgspec

_BLOCK: Final = 256 << 10
"""Bytes of records after which they are compressed."""
_LEVEL: Final = 1
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(list[bytes])


class Unplayed:
    """A queue of records, compressed in blocks, as a busy day of a server has many of them."""

    def __init__(self) -> None:
        self._first: deque[bytes] = deque()
        self._packed: deque[bytes] = deque()
        self._last: list[bytes] = []
        self._size = 0
        """Bytes of the last ones, which are not compressed yet."""

    def add(self, record: bytes) -> None:
        """Add the newest record."""
        self._last.append(record)
        self._size += len(record)
        if self._size >= _BLOCK:
            self._packed.append(zlib.compress(_ENCODER.encode(self._last), _LEVEL))
            self._last, self._size = [], 0

    def take(self) -> bytes | None:
        """Take out the oldest record; None: there is none."""
        if not self._first and self._packed:
            self._first.extend(_DECODER.decode(zlib.decompress(self._packed.popleft())))
        elif not self._first:
            self._first.extend(self._last)
            self._last, self._size = [], 0
        return self._first.popleft() if self._first else None

    def clear(self) -> None:
        """Take out all of them."""
        self._first.clear()
        self._packed.clear()
        self._last, self._size = [], 0
