"""Failures of nodes at random times, drawn once from a seed."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from typing import Final

from msgspec import structs

from corral.model.inventory import Inventory

_DAY: Final = 86_400.0
_AWAY: Final = 3600.0
"""Seconds until a failed node is back."""
Seen = tuple[float, Inventory]
"""A time, and the machines from then on."""


def node_failures(inventory: Inventory, per_day: float, seed: int, begin: float, end: float) -> Iterator[Seen]:
    """Yield what the engine reports at each failure and return of a node, in order of time, as far as it is read.

    Each node fails independently, `per_day` times a day on average (exponential times between failures), from `begin` to
    `end`.
    """
    if not per_day:
        return
    lives = (_life(random.Random(f"{seed} {node}"), node, per_day, begin, end) for node in range(len(inventory.nodes)))
    nodes = list(inventory.nodes)
    for at, node, fails in heapq.merge(*lives):
        nodes[node] = structs.replace(inventory.nodes[node], ready=not fails and inventory.nodes[node].ready)
        yield at, structs.replace(inventory, nodes=tuple(nodes))


def _life(
    draw: random.Random, node: int, per_day: float, begin: float, end: float
) -> Iterator[tuple[float, int, bool]]:
    at = begin
    while (at := at + draw.expovariate(per_day / _DAY)) < end:
        yield at, node, True
        at += _AWAY
        yield at, node, False
