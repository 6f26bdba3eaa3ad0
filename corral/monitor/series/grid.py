"""The two grids of times on which series are kept. Steps are counted from 1970."""

from __future__ import annotations

from typing import Final, NamedTuple


class Grid(NamedTuple):
    """Steps of equal length, in chunks that are packed together."""

    seconds: int
    """The length of a step."""
    steps: int
    """Steps of a chunk."""
    bits: int
    """Significant bits to which gauges are rounded."""
    kept_steps: int
    """Steps for which values are kept."""

    def step(self, at: float) -> int:
        """The step that a time, in seconds since 1970, lies in."""
        return int(at // self.seconds)

    @property
    def chunk_seconds(self) -> int:
        """The length of a chunk."""
        return self.seconds * self.steps


FINE: Final = Grid(15, 240, 16, 26 * 240)
"""Single values: chunks of an hour, for 26 hours, so that a day is whole until it has been summed up."""
COARSE: Final = Grid(600, 144, 9, 90 * 144)
"""The mean, least and most of 10 min: chunks of a day in UTC, for 90 days."""
COUNTER_BITS: Final = 20
"""Significant bits to which counters are rounded in coarse steps, of which their least value alone is kept."""
PER_COARSE: Final = COARSE.seconds // FINE.seconds
"""Fine steps in a coarse one."""
HOURS: Final = COARSE.chunk_seconds // FINE.chunk_seconds
"""Fine chunks in a coarse one."""
