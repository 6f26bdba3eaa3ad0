"""Clocks: rules take the time from a clock, so the same code runs live, in tests and in the simulator."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """The source of time of a loop."""

    def now(self) -> float:
        """Seconds since 1970; never runs backwards within one process, even if the wall clock does."""
        ...


class VirtualClock:
    """A clock that advances only on request."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """The virtual time in seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Advance by `seconds`; raises ValueError if negative."""
        if seconds < 0:
            raise ValueError("time does not run backwards")
        self._now += seconds
