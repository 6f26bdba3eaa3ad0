"""The turns that a manager's reordering gives to waiting jobs of a queue; a higher turn comes first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from corral.kernel.ids import JobId

STEP: Final = 1.0


def turns_at(place: str, others: Mapping[JobId, float], before: float | None) -> tuple[float, dict[JobId, float]]:
    """The turn for a place, as from `turn_of`, and new turns of the jobs that must make room for it.

    Floating point has room for some fifty jobs between two turns. After that, the jobs above move up by one step.
    """
    turn = turn_of(place, others.values(), before)
    if place != "before" or before is None or (turn > before and turn not in others.values()):
        return turn, {}
    return before + STEP / 2, {job: at + STEP for job, at in others.items() if at > before}


def turn_of(place: str, others: Iterable[float], before: float | None) -> float:
    """The turn for a place, given the turns of the other waiting jobs of the queue.

    `before` is the turn of the job to come before. The result is above that turn and below all higher ones. Jobs that
    were never moved have turn 0.
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
