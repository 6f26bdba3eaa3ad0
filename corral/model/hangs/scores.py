"""How fast each rank makes steps, beside its peers in the same gang."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

from corral.model.records import Record

_LEAST_OWN: Final = 0.01
"""The least part of its time that counts as a task's own."""


class Progress(NamedTuple):
    """A step of one task, and when it was reported in seconds since 1970."""

    at: float
    step: float
    waited: float | None = None
    """Seconds that it had waited for other tasks by then; None: it does not say."""


class RankScore(Record, frozen=True):
    """The pace of one task beside its peers'."""

    task: str
    node: str
    step: float
    """The step that it reported last."""
    steps_per_second: float | None = None
    """Over its last reports of at most five minutes; null until it has made two."""
    score: float | None = None
    """Its pace by the median of the others': 0.5 is half as fast; null without a peer to compare it with.

    Where each task reports its waits, it is the pace that the task would have without waits for the others."""
    behind_seconds: float = 0.0
    """How long before the latest report of its gang its own was made."""
    waits: float | None = None
    """The part of the time of those reports in which it waited for other tasks; null unless it reports that."""


class RankScores(Record, frozen=True):
    """The tasks of a running job that report their steps, the slowest first."""

    items: tuple[RankScore, ...] = ()


def pace(reports: Sequence[Progress]) -> float | None:
    """Steps per second from the first to the last of some reports; None if they say nothing of it."""
    if len(reports) < 2:
        return None
    seconds, steps = reports[-1].at - reports[0].at, reports[-1].step - reports[0].step
    return steps / seconds if seconds > 0 and steps >= 0 else None


def waits(reports: Sequence[Progress]) -> float | None:
    """The part of the time from the first to the last of some reports that was spent in waits; None if they do not say."""
    if len(reports) < 2:
        return None
    first, last = reports[0], reports[-1]
    if first.waited is None or last.waited is None or last.waited < first.waited or last.at <= first.at:
        return None
    return min(1.0, (last.waited - first.waited) / (last.at - first.at))


def own_paces(paces: Mapping[str, float], waited: Mapping[str, float]) -> dict[str, float]:
    """The paces that tasks would have if none waited for another; their real ones unless each tells its waits.

    Who comes last to a collective waits least there. What even that task waits is the collective itself, which all need.
    """
    if not paces.keys() <= waited.keys():
        return dict(paces)
    least = min((waited[task] for task in paces), default=0.0)
    return {task: each / max(_LEAST_OWN, 1 - waited[task] + least) for task, each in paces.items()}


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
    waited = {task: part for task, (_, reports) in gang.items() if (part := waits(reports)) is not None}
    own = own_paces(found, waited)
    latest = max((reports[-1].at for _, reports in gang.values()), default=0.0)
    items = [
        RankScore(
            task, node, reports[-1].step, found.get(task), score(own, task), round(latest - reports[-1].at, 3),
            waited.get(task),
        )
        for task, (node, reports) in gang.items()
    ]  # fmt: skip
    return RankScores(tuple(sorted(items, key=lambda each: (each.score is None, each.score or 0.0, each.task))))
