"""Grades of positive amounts, four for each doubling, so that a key changes seldom while an amount grows.

The bounds are 0, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5 and so on. They are exact in binary: equal amounts have equal
grades on every machine.
"""

from __future__ import annotations

from math import frexp, ldexp
from typing import Final

HIGHEST: Final = 200
"""The last grade, for amounts from 2 ** 49.75 on (more than a million devices for a decade, in device-seconds)."""
_STEPS: Final = 4
"""Grades for each doubling."""


def grade(amount: float) -> int:
    """Return the grade of an amount, from 0 (below 1) to `HIGHEST`; O(1)."""
    if amount < 1.0:
        return 0
    part, exponent = frexp(min(amount, 2.0**60))
    return min(HIGHEST, 1 + _STEPS * (exponent - 1) + int((part - 0.5) * 2 * _STEPS))


def least(of: int) -> float:
    """Return the smallest amount of a grade; O(1)."""
    if not of:
        return 0.0
    doublings, step = divmod(of - 1, _STEPS)
    return ldexp(_STEPS + step, doublings) / _STEPS
