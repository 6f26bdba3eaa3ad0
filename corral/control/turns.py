"""Which turn a manager's word gives a waiting job among those of its queue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

STEP: Final = 1.0


def turn_of(place: str, others: Iterable[float], before: float | None) -> float:
    """The turn at a place, given the turns of the other waiting jobs of the queue.

    `before` is the turn of the job that it shall come before: it then comes before all of that turn, and after those of
    higher ones. Jobs that nobody moved have turn 0.
    """
    turns = [0.0, *others]
    match place:
        case "first":
            return max(turns) + STEP
        case "last":
            return min(turns) - STEP
        case "before" if before is not None:
            above = [turn for turn in turns if turn > before]
            return (before + min(above)) / 2 if above else before + STEP
    return 0.0
