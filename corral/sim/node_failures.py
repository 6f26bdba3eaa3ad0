"""Failures of nodes at random times, drawn once from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from msgspec import structs

from corral.model.inventory import Inventory

_DAY: Final = 86_400.0
_AWAY: Final = 3600.0
"""Seconds until a failed node is back."""


class NodeFailures:
    """Each node fails independently, `per_day` times a day on average (exponential times between failures)."""

    def __init__(self, inventory: Inventory, per_day: float, seed: int) -> None:
        self._inventory = inventory
        self._per_day = per_day
        self._draw = random.Random(f"nodes {seed}")

    def until(self, begin: float, end: float) -> Iterator[tuple[float, Inventory]]:
        """Yield what the engine reports at each failure and return, in order of time."""
        changes = sorted(self._changes(begin, end)) if self._per_day else []
        down: set[int] = set()
        for at, node, fails in changes:
            down = down | {node} if fails else down - {node}
            nodes = (
                structs.replace(each, ready=False) if number in down else each
                for number, each in enumerate(self._inventory.nodes)
            )
            yield at, structs.replace(self._inventory, nodes=tuple(nodes))

    def _changes(self, begin: float, end: float) -> Iterator[tuple[float, int, bool]]:
        for number in range(len(self._inventory.nodes)):
            at = begin
            while (at := at + self._draw.expovariate(self._per_day / _DAY)) < end:
                yield at, number, True
                at += _AWAY
                yield at, number, False
