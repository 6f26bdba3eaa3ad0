"""Why: what-if questions are answered on a copy; the forests refer to themselves everywhere, so it is made cell by cell.

Every cell and group gets an empty twin first, and is filled in then: no recursion is deeper than one object.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from corral.scheduler.hived.cells import Cell, PhysicalCell, VirtualCell
from corral.scheduler.hived.groups import Group

if TYPE_CHECKING:
    from corral.scheduler.hived.algorithm import HivedAlgorithm
    from corral.scheduler.hived.state import State

_OWN: Final = {"children", "used", "watchers"}
_OTHERS: Final[dict[type, tuple[str, ...]]] = {
    PhysicalCell: ("parent", "virtual", "user", "reserver"),
    VirtualCell: ("parent", "root", "physical"),
}
"""By kind of cell the fields that refer to others."""
_SHARED: Final[dict[type, tuple[str, ...]]] = {
    kind: tuple(name for name in (*Cell.__slots__, *kind.__slots__) if name not in {*_OWN, *_OTHERS[kind]})
    for kind in (PhysicalCell, VirtualCell)
}
"""By kind of cell the fields that the copy shares, because their values never change."""


def copied(algorithm: HivedAlgorithm) -> HivedAlgorithm:
    """An independent copy; what never changes (the configuration, the levels, requests) is shared."""
    memo: dict[int, Any] = {id(each): each for each in _unchanging(algorithm)}
    cells, groups = list(_cells(algorithm.state)), list(algorithm.groups.values())
    for part in (*cells, *groups):
        memo[id(part)] = object.__new__(type(part))
    for cell in cells:
        _fill(cell, memo[id(cell)], memo)
    for group in groups:
        for name in Group.__slots__:
            setattr(memo[id(group)], name, deepcopy(getattr(group, name), memo))
    return deepcopy(algorithm, memo)


def _fill(cell: Cell, twin: Cell, memo: dict[int, Any]) -> None:
    """As `deepcopy` would, and many times as fast: there are more cells than of anything else."""
    for name in _SHARED[type(cell)]:
        setattr(twin, name, getattr(cell, name))
    for name in _OTHERS[type(cell)]:
        other = getattr(cell, name)
        if other is not None:
            other = memo[id(other)] if id(other) in memo else deepcopy(other, memo)
        setattr(twin, name, other)
    twin.children = tuple([memo[id(child)] for child in cell.children])
    twin.used = dict(cell.used)
    twin.watchers = deepcopy(cell.watchers, memo) if cell.watchers else ()


def _unchanging(algorithm: HivedAlgorithm) -> Iterator[object]:
    yield algorithm.cluster
    for chain in algorithm.state.forest.chains.values():
        yield from chain.levels
    for group in algorithm.groups.values():
        yield from group.pods
        yield from group.preempting.values()


def _cells(state: State) -> Iterator[Cell]:
    for chain in state.forest.chains.values():
        for cells in chain.cells:
            yield from cells
    for tenant in state.forest.tenants.values():
        heads = [*tenant.pinned.values(), *(root for roots in tenant.roots.values() for root in roots)]
        while heads:
            cell = heads.pop()
            yield cell
            heads += cell.children
