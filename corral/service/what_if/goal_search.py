"""Search the least value that reaches a goal: by doubling, then by bisection, with a bounded number of tries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import NamedTuple


class Found(Enum):
    """What became of one value."""

    HELD = "held"
    MISSED = "missed"
    REFUSED = "refused"
    """It is too much: documents with it are refused."""
    UNKNOWN = "unknown"
    """It could not be asked: the search ends."""


class Least(NamedTuple):
    """The end of a search."""

    value: int | None
    """The least value that held among those tried; None: none did."""
    complete: bool
    """Whether the value below it, or the most that is allowed, is known to miss the goal."""


async def least(
    attempt: Callable[[int], Awaitable[Found]], first: int, most: int, tries: int, go_on: Callable[[], bool]
) -> Least:
    """Search from `first` to `most`; the goal is assumed to hold for all values above the least that reaches it.

    Asks `attempt` at most `tries` times, and no more when `go_on` says no. O(log(most - first)) tries.
    """
    missed, above, best = first - 1, most + 1, None
    """The greatest value that missed the goal, and the least that held or was refused."""
    value, step = first, 1
    bounded = False
    """Whether a value held or was refused, so that only those below it are left."""
    for _ in range(tries):
        if above - missed <= 1 or not go_on():
            break
        found = await attempt(value)
        if found is Found.UNKNOWN:
            break
        if found is Found.MISSED:
            missed = value
        else:
            above, bounded = value, True
            best = value if found is Found.HELD else best
        if bounded:
            value = (missed + above) // 2
        else:
            value, step = min(most, first + step), step * 2
    return Least(best, above - missed <= 1)
