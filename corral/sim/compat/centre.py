"""Optima of the policies' problems on one type of GPU, chosen as an interior-point solver chooses among equal ones.

The anchors' problems often have many optima, and the printed figures depend on which one the solver (ECOS) returns. Such a
solver ends near the analytic centre of the optimal set: the point that maximises the sum of the logarithms of all slacks.
On one type of GPU the jobs are coupled by the capacity alone, so each is solved for at a price of capacity and the price is
bisected. Fractions x are within 0 and 1, `gpus` x adds up to the capacity at most. O(jobs) a step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HALVINGS = 60
"""Steps of a bisection: the bracket shrinks to 1e-18 of its width."""
BARRIER = 1e-8
"""Weight of the logarithms at which interior-point solvers end, by their usual tolerance."""


def centre_above(least: Floats, gpus: Floats, capacity: float) -> Floats:
    """Return the analytic centre of least <= x <= 1, x >= 0 within the capacity.

    A job with least = 1 has no choice. Where `least` already fills the capacity it is returned.
    """
    least = np.clip(least, 0.0, 1.0)
    free = least < 1 - 1e-9

    def at(price: float) -> Floats:
        low, high = least.copy(), np.ones_like(least)
        for _ in range(HALVINGS):
            x = (low + high) / 2
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = 1 / (x - least) + 1 / x - 1 / (1 - x) - price * gpus
            rising = free & (slope > 0)
            low, high = np.where(rising, x, low), np.where(rising, high, x)
        return np.where(free, (low + high) / 2, 1.0)

    if float(gpus @ least) >= capacity * (1 - 1e-9):
        return least
    return _at_the_right_price(at, gpus, capacity, 1.0)


def most_throughput(speed: Floats, gpus: Floats, capacity: float) -> Floats:
    """Return x that maximises sum(speed x); jobs of equal speed per GPU get equal fractions.

    Jobs that get nothing keep a tiny positive fraction, in the order in which an interior-point solver would leave them.
    """

    def at(price: float) -> Floats:
        gain = speed - price * gpus
        root = np.sqrt(gain * gain + 4 * BARRIER * BARRIER)
        loss: Floats = 2 * BARRIER / (root + 2 * BARRIER + np.abs(gain))
        return np.where(gain > 0, 1 - loss, loss)

    return _at_the_right_price(at, gpus, capacity, BARRIER)


def _at_the_right_price(at: Callable[[float], Floats], gpus: Floats, capacity: float, barrier: float) -> Floats:
    """Return at(price) with price = barrier / slack, both of which fall as the price rises."""

    def too_cheap(price: float) -> bool:
        slack = capacity - float(gpus @ at(price))
        return slack <= 0 or barrier / slack > price

    low, high = 0.0, barrier
    while too_cheap(high):
        low, high = high, high * 4
        if high > 1e12:
            return at(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if too_cheap(middle):
            low = middle
        else:
            high = middle
    return at(high)
