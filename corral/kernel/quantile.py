"""The quantile by nearest rank: a value that was measured, not one between two."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil


def quantile(values: Sequence[float], part: float) -> float:
    """The least of sorted values, at least one, that at least this part of them (0 to 1) do not exceed."""
    return values[max(0, ceil(part * len(values)) - 1)]
