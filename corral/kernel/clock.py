"""Why: rules never read the time themselves, so the same code runs live, in tests and in the simulator."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Where a loop reads the time."""

    def now(self) -> float:
        """Seconds since 1970 that never run backwards within one process, whatever the wall clock does."""
        ...


class VirtualClock:
    """A clock that moves only when told to."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """The virtual time in seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move on by `seconds`, which is not negative."""
        if seconds < 0:
            raise ValueError("time does not run backwards")
        self._now += seconds
