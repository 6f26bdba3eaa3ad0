"""Timed items in virtual time, soonest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Agenda(Generic[Item]):
    """Items with times in seconds; items of the same time keep the order in which they were added."""

    def __init__(self, items: Iterable[tuple[float, Item]] = ()) -> None:
        self._order = count()
        self._heap = [(at, next(self._order), item) for at, item in items]
        heapify(self._heap)

    def add(self, at: float, item: Item) -> None:
        """Add an item; its time may be in the past."""
        heappush(self._heap, (at, next(self._order), item))

    @property
    def next_at(self) -> float:
        """The time of the first item; infinite if there is none."""
        return self._heap[0][0] if self._heap else inf

    def due(self, now: float) -> Iterator[Item]:
        """Remove and yield the items up to `now`, also those added meanwhile."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            yield heappop(heap)[2]
