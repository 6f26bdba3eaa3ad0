"""The free list of one cell level, in one of two orders that decide which of several equal cells is taken.

In *configuration* order the list does not depend on earlier events, so a state rebuilt after a crash makes the same
decisions. *History* order is HiveD's own: a freed cell goes to the end, and the last cell takes the place of a removed
one. Only it reproduces HiveD's published decisions.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from corral.scheduler.planners.hived.algorithm.cells import PhysicalCell


class Order(StrEnum):
    """The order of the free lists."""

    CONFIGURATION = "configuration"
    HISTORY = "history"


def _ordinal(cell: PhysicalCell) -> int:
    return cell.ordinal


class FreeList:
    """The free cells of one level."""

    __slots__ = ("_by_history", "_cells")

    def __init__(self, order: Order, cells: Iterable[PhysicalCell] = ()) -> None:
        self._by_history = order is Order.HISTORY
        self._cells = list(cells)

    def copy(self) -> FreeList:
        """Return an independent copy of the list."""
        return FreeList(Order.HISTORY if self._by_history else Order.CONFIGURATION, self._cells)

    def twin(self, twins: Mapping[PhysicalCell, PhysicalCell]) -> FreeList:
        """Return the same list of the twin cells."""
        order = Order.HISTORY if self._by_history else Order.CONFIGURATION
        return FreeList(order, [twins[cell] for cell in self._cells])

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[PhysicalCell]:
        return iter(self._cells)

    def __contains__(self, cell: PhysicalCell) -> bool:
        if self._by_history:
            return cell in self._cells
        at = bisect_left(self._cells, cell.ordinal, key=_ordinal)
        return at < len(self._cells) and self._cells[at] is cell

    def add(self, cell: PhysicalCell) -> None:
        """Add a cell that became free."""
        if self._by_history:
            self._cells.append(cell)
        else:
            insort(self._cells, cell, key=_ordinal)

    def remove(self, cell: PhysicalCell) -> None:
        """Remove a cell, which must be in the list."""
        if self._by_history:
            last = self._cells.pop()
            if last is not cell:
                self._cells[self._cells.index(cell)] = last
        else:
            self._cells.pop(bisect_left(self._cells, cell.ordinal, key=_ordinal))

    def first(self, count: int) -> list[PhysicalCell]:
        """Return the `count` cells that repeatedly removing the first one would take, in that order."""
        if not self._by_history or count < 1:
            return self._cells[: max(count, 0)]
        return self._cells[:1] + self._cells[:0:-1][: count - 1]
