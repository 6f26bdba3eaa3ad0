"""Why: rules need a time that never runs backwards, and people need one that agrees with the wall; this is both."""

from __future__ import annotations

import time


class SystemClock:
    """The wall clock, but it never runs backwards within a process: after a jump back it goes on at the steady rate."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970."""
        steady = time.monotonic()
        offset = time.time() - steady
        if offset > self._offset:
            self._offset = offset
        return steady + self._offset
