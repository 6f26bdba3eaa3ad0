"""Compare two profiles by the shares of the time of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

_MOST: Final = 50


class Difference(NamedTuple):
    """A share of the time in both profiles."""

    name: str
    before: float
    after: float


def differences(before: Mapping[str, float], after: Mapping[str, float]) -> list[Difference]:
    """The shares that differ most, first."""
    names = before.keys() | after.keys()
    made = [Difference(name, before.get(name, 0.0), after.get(name, 0.0)) for name in names]
    return sorted(made, key=lambda each: (-abs(each.after - each.before), each.name))[:_MOST]
