"""Bring the values of a series onto the steps of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from corral.monitor.series.grid import COARSE, FINE, PER_COARSE
from corral.monitor.series.packing import Chunk

Columns = tuple[tuple[float | None, ...], tuple[float | None, ...], tuple[float | None, ...]]
"""The mean, the least and the most of each step; None where there is no value."""


class Summed(NamedTuple):
    """Some values of one step."""

    values: int
    total: float
    low: float
    high: float

    def plus(self, other: Summed) -> Summed:
        """Both together."""
        return Summed(
            self.values + other.values, self.total + other.total, min(self.low, other.low), max(self.high, other.high)
        )


def coarse_points(chunk: Chunk) -> Iterable[tuple[int, Summed]]:
    """The steps of a coarse chunk; each counts as one value. A counter has one column."""
    three = chunk.columns if len(chunk.columns) == 3 else chunk.columns[:1] * 3
    for step, mean, low, high in zip(chunk.steps, *three, strict=True):
        yield step, Summed(1, mean, low, high)


def summed(points: Mapping[int, float], first: int) -> dict[int, tuple[float, float, float]]:
    """The mean, least and most of each coarse step, from fine values by step; `first` is the first coarse step."""
    groups: dict[int, list[float]] = {}
    for step, value in points.items():
        groups.setdefault(step // PER_COARSE - first, []).append(value)
    made = {}
    for step, values in groups.items():
        low, high = min(values), max(values)
        mean = low if low == high else min(max(sum(values) / len(values), low), high)
        made[step] = mean, low, high
    return made


class FineValues(NamedTuple):
    """Single values of successive steps; None where there is none."""

    first: int
    """The step of the first one, since 1970."""
    values: list[float | None]

    def put(self, begin: int, steps: Sequence[int], values: Sequence[float]) -> None:
        """Put values at steps counted from `begin`; what lies outside is left out."""
        at = begin - self.first
        if steps and steps[-1] - steps[0] == len(steps) - 1:
            low, high = at + steps[0], at + steps[-1] + 1
            skipped = max(0, -low)
            kept = values[skipped : max(0, len(values) - max(0, high - len(self.values)))]
            if kept:
                self.values[low + skipped : low + skipped + len(kept)] = kept
            return
        for step, value in zip(steps, values, strict=True):
            if 0 <= at + step < len(self.values):
                self.values[at + step] = value

    def summed(self, begin: int, end: int) -> Summed | None:
        """All values from step `begin` to before `end` together; None if there are none."""
        said = self.values[max(0, begin - self.first) : max(0, end - self.first)]
        known = said if None not in said else [each for each in said if each is not None]
        return Summed(len(known), sum(known), min(known), max(known)) if known else None  # type: ignore[arg-type, type-var]


def columns(fine: FineValues, sums: Iterable[tuple[int, Summed]], begin: int, step: int, steps: int) -> Columns:
    """The columns of an answer, from fine values and coarse sums by their steps.

    `begin` and `step` are in seconds. A sum counts only where there is no value in the same coarse step.
    """
    first, each = begin // FINE.seconds, step // FINE.seconds
    kept = [fine.summed(first + at * each, first + (at + 1) * each) for at in range(steps)]
    for coarse, summed_up in sums:
        at = (coarse * COARSE.seconds - begin) // step
        if 0 <= at < steps and fine.summed(coarse * PER_COARSE, (coarse + 1) * PER_COARSE) is None:
            there = kept[at]
            kept[at] = summed_up if there is None else there.plus(summed_up)
    return (
        tuple([None if one is None else one.total / one.values for one in kept]),
        tuple([None if one is None else one.low for one in kept]),
        tuple([None if one is None else one.high for one in kept]),
    )
