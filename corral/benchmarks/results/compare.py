"""Compare two results: the medians of each metric, and whether the change is for the better."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from corral.benchmarks.results.lines import NodeResult, summary
from corral.benchmarks.results.matrices import is_way
from corral.benchmarks.suite.catalogue import unit_of


class Change(NamedTuple):
    """A metric in two results."""

    metric: str
    before: float | None
    after: float | None
    unit: str
    gain: float | None
    """The change for the better as a part of the value before; negative is worse. None where none can be told."""


def compare(before: Iterable[NodeResult], after: Iterable[NodeResult]) -> list[Change]:
    """Return the change of every metric that one of the two has, the largest loss first, then by name.

    Single ways are not among them: `matrices.paired` has these.
    """
    old, new = summary(before), summary(after)
    changes = []
    for metric in sorted(each for each in {*old, *new} if not is_way(each)):
        unit = unit_of(metric)
        first = old[metric][1] if metric in old else None
        second = new[metric][1] if metric in new else None
        changes.append(Change(metric, first, second, unit.unit if unit else "", _gain(metric, first, second)))
    return sorted(changes, key=lambda change: (change.gain is None, change.gain or 0, change.metric))


def _gain(metric: str, before: float | None, after: float | None) -> float | None:
    unit = unit_of(metric)
    if unit is None or before is None or after is None or before == 0:
        return None
    change = (after - before) / abs(before)
    return change if unit.larger_is_better else -change
