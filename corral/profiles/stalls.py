"""Find steps that take longer than the others at a regular pace, such as every tenth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

LEAST_LONGER: Final = 1.5
"""How many times the median step a step takes at least to be a stall."""
_LEAST_STALLS: Final = 4
_MOST_PART: Final = 0.5
"""The part of all steps that may be stalls; beyond it they are the usual step."""
_STEADY: Final = 0.25
"""How far the distance between two stalls may be from their median, as a part of it; a step more or less is always well."""


class Stalls(NamedTuple):
    """Regular stalls of one rank."""

    every: float
    """Steps from one to the next, in the median."""
    times: float
    """How many times the median step a stall takes, in the median."""
    lost: float
    """Seconds of all stalls beyond the median step."""


def periodic_stalls(steps: Sequence[float]) -> Stalls | None:
    """Return the regular stalls among the lengths of steps, given in seconds and in order; None if there are none.

    Regular are at least four stalls whose distances are alike. O(steps log steps).
    """
    if len(steps) < 2 * _LEAST_STALLS:
        return None
    usual = median(steps)
    found = [at for at, seconds in enumerate(steps) if seconds > LEAST_LONGER * usual]
    if usual <= 0 or not _LEAST_STALLS <= len(found) <= _MOST_PART * len(steps):
        return None
    distances = [after - before for before, after in pairwise(found)]
    every = median(distances)
    if any(abs(each - every) > max(1.0, _STEADY * every) for each in distances):
        return None
    longer = [steps[at] for at in found]
    return Stalls(every, median(longer) / usual, sum(each - usual for each in longer))
