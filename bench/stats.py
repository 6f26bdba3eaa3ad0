"""Percentiles by one definition (nearest rank) for all benchmarks."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0..1) of `values` do not exceed (nearest rank).

    Raises ValueError when there are no values.
    """
    if not values:
        raise ValueError("no values were measured")
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def median(values: Sequence[float]) -> float:
    """The 50th percentile, nearest rank."""
    return percentile(values, 0.5)
