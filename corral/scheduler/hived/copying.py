"""Why: what-if questions are answered on a copy; the forests refer to themselves everywhere, so it is made cell by cell.

Every cell and group gets an empty twin first, and is filled in then: no recursion is deeper than one object.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral.scheduler.hived.algorithm import HivedAlgorithm
    from corral.scheduler.hived.state import State


def copied(algorithm: HivedAlgorithm) -> HivedAlgorithm:
    """An independent copy; what never changes (the configuration, the levels, requests) is shared."""
    memo: dict[int, Any] = {id(each): each for each in _unchanging(algorithm)}
    parts = list(_parts(algorithm.state))
    for part in parts:
        memo[id(part)] = object.__new__(type(part))
    for part in parts:
        twin = memo[id(part)]
        for name in _fields(type(part)):
            setattr(twin, name, deepcopy(getattr(part, name), memo))
    return deepcopy(algorithm, memo)


def _unchanging(algorithm: HivedAlgorithm) -> Iterator[object]:
    yield algorithm.cluster
    for chain in algorithm.state.forest.chains.values():
        yield from chain.levels
    for group in algorithm.groups.values():
        yield from group.pods
        yield from group.preempting.values()


def _parts(state: State) -> Iterator[object]:
    for chain in state.forest.chains.values():
        for cells in chain.cells:
            yield from cells
    for tenant in state.forest.tenants.values():
        heads = [*tenant.pinned.values(), *(root for roots in tenant.roots.values() for root in roots)]
        while heads:
            cell = heads.pop()
            yield cell
            heads += cell.children
    yield from state.groups.values()


def _fields(kind: type) -> list[str]:
    return [name for each in kind.__mro__ for name in getattr(each, "__slots__", ())]
