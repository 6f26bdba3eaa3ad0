"""Why: which of several equal cells is taken follows from the order of the free list; there are two orders to choose from.

In the *configuration*'s order the list does not depend on what came and went before, so a state rebuilt after a crash
decides as the old one would have. In *history* order it is HiveD's own list: what is freed goes to the end, and the last
takes the place of what is removed; HiveD's published decisions come out only so.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from corral.scheduler.hived.cells import PhysicalCell


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
        """The same list, to be tried on."""
        return FreeList(Order.HISTORY if self._by_history else Order.CONFIGURATION, self._cells)

    def twin(self, twins: Mapping[PhysicalCell, PhysicalCell]) -> FreeList:
        """The same list of other cells."""
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
        """A cell is free."""
        if self._by_history:
            self._cells.append(cell)
        else:
            insort(self._cells, cell, key=_ordinal)

    def remove(self, cell: PhysicalCell) -> None:
        """A cell, which is in the list, is not free any more."""
        if self._by_history:
            last = self._cells.pop()
            if last is not cell:
                self._cells[self._cells.index(cell)] = last
        else:
            self._cells.pop(bisect_left(self._cells, cell.ordinal, key=_ordinal))

    def first(self, count: int) -> list[PhysicalCell]:
        """The `count` cells that would go if the first were removed so often."""
        if not self._by_history or count < 1:
            return self._cells[: max(count, 0)]
        return self._cells[:1] + self._cells[:0:-1][: count - 1]
