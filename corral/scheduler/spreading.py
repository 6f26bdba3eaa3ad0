"""Why: tasks that are spread survive what one cell does not; how even they can be follows from the room alone."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush


def evenly(room: Mapping[int, int], there: Mapping[int, int], count: int) -> dict[int, int] | None:
    """How many of `count` tasks each cell gets, None when there is not room for all.

    One after the other goes where fewest are, of equals to the first cell with room: no other division has a smaller
    greatest or a greater smallest number, so a bound on their difference is kept if it can be.
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
