"""Spread tasks evenly over cells with limited room."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush


def evenly(room: Mapping[int, int], there: Mapping[int, int], count: int) -> dict[int, int] | None:
    """Return how many of `count` tasks each cell gets, or None if there is not enough room.

    Tasks go one by one to the cell with the fewest tasks, on ties to the first with room. No other division has a
    smaller maximum or a larger minimum, so a bound on the skew is met whenever that is possible.
    """
    if sum(room.values()) < count:
        return None
    counts = dict.fromkeys(room, 0)
    heap = [(there.get(cell, 0), cell) for cell, left in room.items() if left]
    heapify(heap)
    for _ in range(count):
        level, cell = heappop(heap)
        counts[cell] += 1
        if counts[cell] < room[cell]:
            heappush(heap, (level + 1, cell))
    return counts
