"""Means over the seeds of a simulation, with their confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import atan, cos, pi, sin, sqrt
from typing import Final, NamedTuple

LEVEL: Final = 0.95
"""How often an interval holds the true mean, if the values are independent and normal."""


class Estimate(NamedTuple):
    """The mean of `n` values and its confidence interval."""

    mean: float
    half_width: float | None
    """The interval is `mean` ± this; None of a single value, of which nothing is known but itself."""
    n: int


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean and its 95 % confidence interval by Student's t, from at least one value."""
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return Estimate(mean, None, n)
    deviation = sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    return Estimate(mean, student_t(n - 1) * deviation / sqrt(n), n)


@lru_cache(256)
def student_t(degrees: int, level: float = LEVEL) -> float:
    """Return t such that a value of Student's distribution is within ±t with probability `level`, from 0.5 to 0.999."""
    low, high = 0.0, 1.0
    while _within(high, degrees) < level:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < level else (low, middle)
    return (low + high) / 2


def _within(t: float, degrees: int) -> float:
    """Return the probability of ±t: the finite series of Abramowitz and Stegun, 26.7.3 and 26.7.4; O(degrees)."""
    angle = atan(t / sqrt(degrees))
    odd = degrees % 2
    term, total = (cos(angle), 0.0) if odd else (1.0, 0.0)
    for number in range(1 + odd, degrees, 2):
        total += term
        term *= number / (number + 1) * cos(angle) ** 2
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
