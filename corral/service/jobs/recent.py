"""Values that were read a moment ago, for callers that come many times a second."""

from __future__ import annotations

import time
from typing import Final, Generic, TypeVar

_MOST: Final = 1_000

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Values by key, each for `seconds` from the time that it was read; at most 1,000 of them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._read: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        """The value of `key`; None if none was read recently."""
        found = self._read.get(key)
        if found is None or found[0] < time.monotonic():
            return None
        return found[1]

    def put(self, key: K, value: V) -> V:
        """Remember a value that was read just now, and return it."""
        now = time.monotonic()
        self._read.pop(key, None)
        while self._read and (len(self._read) >= _MOST or self._read[next(iter(self._read))][0] < now):
            del self._read[next(iter(self._read))]
        self._read[key] = (now + self._seconds, value)
        return value
