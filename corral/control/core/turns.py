"""Which turn a manager's word gives a waiting job among those of its queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from corral.kernel.ids import JobId

STEP: Final = 1.0


def turns_at(place: str, others: Mapping[JobId, float], before: float | None) -> tuple[float, dict[JobId, float]]:
    """The turn at a place, as `turn_of` says it, and the new turns of those that have to make room for it.

    Between two turns there is room for some fifty others; then those of the higher ones go up by a step.
    """
    turn = turn_of(place, others.values(), before)
    if place != "before" or before is None or (turn > before and turn not in others.values()):
        return turn, {}
    return before + STEP / 2, {job: at + STEP for job, at in others.items() if at > before}


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
