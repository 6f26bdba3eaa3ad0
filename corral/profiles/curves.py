"""Figures over the time of a profile, as few points as a small picture shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

POINTS: Final = 120


class Curve(NamedTuple):
    """A figure over time: the mean of each of equally long spans."""

    name: str
    unit: str
    points: tuple[float, ...]
    most: float
    """The greatest single value."""


def curve(name: str, unit: str, samples: Sequence[tuple[float, float]], seconds: float) -> Curve:
    """Make a curve of values with the time at which each was read; a span without one has the value before."""
    columns = min(POINTS, max(1, len(samples)))
    sums, counts = [0.0] * columns, [0] * columns
    for at, value in samples:
        column = min(columns - 1, max(0, int(columns * at / seconds))) if seconds > 0 else 0
        sums[column] += value
        counts[column] += 1
    points: list[float] = []
    last = samples[0][1] if samples else 0.0
    for total, count in zip(sums, counts, strict=True):
        last = total / count if count else last
        points.append(round(last, 3))
    return Curve(name, unit, tuple(points), round(max((value for _, value in samples), default=0.0), 3))


def mean(samples: Sequence[tuple[float, float]]) -> float:
    """The mean of values that were read in equal steps."""
    return sum(value for _, value in samples) / len(samples) if samples else 0.0
