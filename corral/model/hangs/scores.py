"""How fast each rank makes steps, beside its peers in the same gang."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from corral.model.records import Record


class Progress(NamedTuple):
    """A step of one task, and when it was reported in seconds since 1970."""

    at: float
    step: float


class RankScore(Record, frozen=True):
    """The pace of one task beside its peers'."""

    task: str
    node: str
    step: float
    """The step that it reported last."""
    steps_per_second: float | None = None
    """Over its last reports of at most five minutes; null until it has made two."""
    score: float | None = None
    """Its pace by the median of the others': 0.5 is half as fast; null without a peer to compare it with."""
    behind_seconds: float = 0.0
    """How long before the latest report of its gang its own was made."""


class RankScores(Record, frozen=True):
    """The tasks of a running job that report their steps, the slowest first."""

    items: tuple[RankScore, ...] = ()


def pace(reports: Sequence[Progress]) -> float | None:
    """Steps per second from the first to the last of some reports; None if they say nothing of it."""
    if len(reports) < 2:
        return None
    seconds, steps = reports[-1].at - reports[0].at, reports[-1].step - reports[0].step
    return steps / seconds if seconds > 0 and steps >= 0 else None


def peers_of(paces: Mapping[str, float], task: str) -> float:
    """The median pace of the other tasks; 0 if there are none."""
    others = [each for name, each in paces.items() if name != task]
    return median(others) if others else 0.0


def score(paces: Mapping[str, float], task: str) -> float | None:
    """The pace of a task by the median of the others'; None if there are none or they stand still."""
    peers = peers_of(paces, task)
    return paces[task] / peers if peers > 0 and task in paces else None


def ranked(gang: Mapping[str, tuple[str, Sequence[Progress]]]) -> RankScores:
    """The scores of a gang's tasks from the node and the last reports of each, the slowest first."""
    found = {task: rate for task, (_, reports) in gang.items() if (rate := pace(reports)) is not None}
    latest = max((reports[-1].at for _, reports in gang.values()), default=0.0)
    items = [
        RankScore(task, node, reports[-1].step, found.get(task), score(found, task), round(latest - reports[-1].at, 3))
        for task, (node, reports) in gang.items()
    ]
    return RankScores(tuple(sorted(items, key=lambda each: (each.score is None, each.score or 0.0, each.task))))
