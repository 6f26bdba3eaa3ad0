"""Bring the values of a series onto the steps of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from corral.monitor.series.grid import PER_COARSE
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


def one(value: float) -> Summed:
    """A single value."""
    return Summed(1, value, value, value)


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


def columns(points: Iterable[tuple[float, Summed]], begin: float, step: int, steps: int) -> Columns:
    """The columns of an answer that begins at `begin`, from values by their times in seconds."""
    found: dict[int, Summed] = {}
    for at, value in points:
        which = int((at - begin) // step)
        if 0 <= which < steps:
            before = found.get(which)
            found[which] = value if before is None else before.plus(value)
    each = [found.get(which) for which in range(steps)]
    return (
        tuple(None if one is None else one.total / one.values for one in each),
        tuple(None if one is None else one.low for one in each),
        tuple(None if one is None else one.high for one in each),
    )
