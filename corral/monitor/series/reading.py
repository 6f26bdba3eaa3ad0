"""Bring the values of a series onto the steps of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def columns(
    values: Mapping[int, float], sums: Iterable[tuple[int, Summed]], begin: int, step: int, steps: int
) -> Columns:
    """The columns of an answer, from fine values and coarse sums by their steps.

    `begin` and `step` are in seconds. A sum counts only where there is no value in the same coarse step.
    """
    groups: dict[int, list[float]] = {}
    first, each = begin // FINE.seconds, step // FINE.seconds
    for at, value in values.items():
        groups.setdefault((at - first) // each, []).append(value)
    found = {at: Summed(len(said), sum(said), min(said), max(said)) for at, said in groups.items()}
    covered = {at // PER_COARSE for at in values}
    for coarse, summed_up in sums:
        if coarse not in covered:
            at = (coarse * COARSE.seconds - begin) // step
            found[at] = found[at].plus(summed_up) if at in found else summed_up
    kept = [found.get(at) for at in range(steps)]
    return (
        tuple(None if one is None else one.total / one.values for one in kept),
        tuple(None if one is None else one.low for one in kept),
        tuple(None if one is None else one.high for one in kept),
    )
