"""The system's clock: wall time that never runs backwards within a process."""

from __future__ import annotations

import time


class SystemClock:
    """The wall clock made monotonic: after a jump back it continues from its last time at the steady rate."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970."""
        steady = time.monotonic()
        offset = time.time() - steady
        if offset > self._offset:
            self._offset = offset
        return steady + self._offset
