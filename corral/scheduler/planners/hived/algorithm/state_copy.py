"""Copy HiveD's whole state cell by cell, for plans and questions that are tried on a copy.

Every cell and group first gets an empty twin, which is filled in afterwards, so that recursion stays one object deep.
There are hundreds of thousands of cells: their fields are copied explicitly, and `deepcopy` handles only the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from corral.scheduler.planners.hived.algorithm.cells import Cell, PhysicalCell, VirtualCell
from corral.scheduler.planners.hived.algorithm.forest import Chain, Forest, Tenant
from corral.scheduler.planners.hived.algorithm.groups import Group, Slot
from corral.scheduler.planners.hived.algorithm.topology import RankedNodes

if TYPE_CHECKING:
    from corral.scheduler.planners.hived.algorithm.scheduler import HivedAlgorithm

_Twins = dict[Any, Any]
"""The twin of each cell or group; None maps to itself."""


def copied(algorithm: HivedAlgorithm) -> HivedAlgorithm:
    """Return an independent copy: O(cells). The configuration, levels and requests, which never change, are shared."""
    state, new = algorithm.state, object.__new__
    physical, virtual = list(_physical(state.forest)), list(_virtual(state.forest))
    twins: _Twins = {None: None}
    for part in (*physical, *virtual, *state.groups.values()):
        twins[part] = new(type(part))
    memo: dict[int, Any] = {id(part): twin for part, twin in twins.items() if part is not None}
    memo |= {id(each): each for each in _unchanging(algorithm)}
    for cell in physical:
        _fill_physical(cell, twins, memo)
    for owned in virtual:
        _fill_virtual(owned, twins, memo)
    for group in state.groups.values():
        _fill_group(group, twins)
    _copy_forest(state.forest, twins, memo)
    for ledger in state.ledgers.values():
        memo |= {id(bad): set(bad) for bad in ledger.bad}
        memo |= {id(free): free.twin(twins) for free in ledger.free}
    _copy_views([*state.owned_views.values(), *state.pinned_views.values()], twins, memo)
    _copy_views(state.physical_views.values(), twins, memo)
    return deepcopy(algorithm, memo)


def _fill_physical(cell: PhysicalCell, twins: _Twins, memo: dict[int, Any]) -> None:
    twin: PhysicalCell = twins[cell]
    twin.kind, twin.level, twin.ordinal = cell.kind, cell.level, cell.ordinal
    twin.parent = twins[cell.parent]
    twin.children = tuple([twins[child] for child in cell.children]) if cell.children else ()
    twin.used, twin.busy = cell.used.copy(), cell.busy
    twin.watchers = _watched(cell, memo) if cell.watchers else ()
    twin.address, twin.nodes, twin.device = cell.address, cell.nodes, cell.device
    twin.healthy, twin.free, twin.split, twin.pinned = cell.healthy, cell.free, cell.split, cell.pinned
    twin.virtual = twins[cell.virtual]
    twin.user, twin.reserver = twins[cell.user], twins[cell.reserver]


def _fill_virtual(cell: VirtualCell, twins: _Twins, memo: dict[int, Any]) -> None:
    twin: VirtualCell = twins[cell]
    twin.kind, twin.level, twin.ordinal = cell.kind, cell.level, cell.ordinal
    twin.parent = twins[cell.parent]
    twin.children = tuple([twins[child] for child in cell.children]) if cell.children else ()
    twin.used, twin.busy = cell.used.copy(), cell.busy
    twin.watchers = _watched(cell, memo) if cell.watchers else ()
    twin.address, twin.vc, twin.pinned_id = cell.address, cell.vc, cell.pinned_id
    twin.root, twin.physical = twins[cell.root], twins[cell.physical]


def _watched(cell: Cell, memo: dict[int, Any]) -> tuple[set[Cell], ...]:
    """Return the copies of the view sets that a cell reports its changes to."""
    found = []
    for changed in cell.watchers:
        twin = memo.get(id(changed))
        if twin is None:
            twin = memo[id(changed)] = {memo[id(each)] for each in changed}
        found.append(twin)
    return tuple(found)


def _copy_views(
    views: Iterable[RankedNodes[PhysicalCell] | RankedNodes[VirtualCell]], twins: _Twins, memo: dict[int, Any]
) -> None:
    for view in views:
        changed = memo.get(id(view.changed))
        memo[id(view)] = view.twin(twins, {twins[cell] for cell in view.changed} if changed is None else changed)


def _fill_group(group: Group, twins: _Twins) -> None:
    twin: Group = twins[group]
    for name in Group.__slots__:
        setattr(twin, name, getattr(group, name))
    twin.preempting = dict(group.preempting)
    twin.slots = [
        Slot(
            slot.size,
            slot.node,
            slot.devices,
            [twins[cell] for cell in slot.cells],
            [twins[cell] for cell in slot.owned],
            slot.told,
            slot.pod,
        )
        for slot in group.slots
    ]


def _copy_forest(forest: Forest, twins: _Twins, memo: dict[int, Any]) -> None:
    """Add copies of the chains, tenants and forest to the memo, since ledgers refer to them by identity."""
    for chain in forest.chains.values():
        cells = [[twins[cell] for cell in level] for level in chain.cells]
        memo[id(chain)] = Chain(chain.name, chain.levels, cells)
    for tenant in forest.tenants.values():
        owned = {name: [[twins[cell] for cell in level] for level in levels] for name, levels in tenant.owned.items()}
        for name, levels in tenant.owned.items():
            memo[id(levels)] = owned[name]
        memo[id(tenant)] = Tenant(
            tenant.name,
            {name: [twins[cell] for cell in roots] for name, roots in tenant.roots.items()},
            owned,
            {name: twins[cell] for name, cell in tenant.pinned.items()},
        )
    memo[id(forest)] = Forest(
        {name: memo[id(chain)] for name, chain in forest.chains.items()},
        {name: memo[id(tenant)] for name, tenant in forest.tenants.items()},
        {name: twins[cell] for name, cell in forest.pins.items()},
        {place: twins[cell] for place, cell in forest.devices.items()},
        {name: [twins[cell] for cell in cells] for name, cells in forest.on_node.items()},
        forest.chains_of,
    )


def _unchanging(algorithm: HivedAlgorithm) -> Iterator[object]:
    yield algorithm.cluster
    for chain in algorithm.state.forest.chains.values():
        yield from chain.levels


def _physical(forest: Forest) -> Iterator[PhysicalCell]:
    for chain in forest.chains.values():
        for cells in chain.cells:
            yield from cells


def _virtual(forest: Forest) -> Iterator[VirtualCell]:
    for tenant in forest.tenants.values():
        heads = [*tenant.pinned.values(), *(root for roots in tenant.roots.values() for root in roots)]
        while heads:
            cell = heads.pop()
            yield cell
            heads += cell.children
