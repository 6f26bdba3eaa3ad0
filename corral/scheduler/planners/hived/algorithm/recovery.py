"""Account for pods that already run, after a crash or a new configuration.

Source: HiveD's work-preserving reconfiguration. A device that the configuration no longer has is not accounted for. If
the owned cell is gone, or counting it as owned would break another guarantee, the group keeps running
opportunistically.
"""

from __future__ import annotations

from collections.abc import Sequence

from corral.kernel.errors import Conflict
from corral.scheduler.planners.hived.algorithm.cells import OPPORTUNISTIC, PhysicalCell, VirtualCell
from corral.scheduler.planners.hived.algorithm.groups import Bind, Group, GroupState, PodRequest, Slot
from corral.scheduler.planners.hived.algorithm.state import State


def find_device(state: State, node: str, index: int) -> PhysicalCell | None:
    """Return the cell of a device, or None if the configuration does not have it (any more)."""
    return state.forest.devices.get((node, index))


def restore(state: State, request: PodRequest, bound: Bind) -> Group:
    """Account for an unknown group, from the request and the binding of one of its pods.

    Raises Conflict, and changes nothing, when another group uses one of its devices.
    """
    slots = [
        Slot(
            size=len(place.devices),
            node=place.node,
            devices=place.devices,
            cells=[find_device(state, place.node, index) for index in place.devices],
            owned=[None] * len(place.devices),
            told=place.owned_types,
        )
        for place in bound.group
    ]
    group = Group(
        request.group, request.vc, request.priority, request.lazy_preemption, request.ignore_suggested,
        request.pinned_cell, bound.chain, GroupState.ALLOCATED, slots, False,
    )  # fmt: skip
    _refuse_overlap(group)
    for cell, _ in group.held():
        if cell.reserver is not None:
            state.cancel(cell.reserver)
    lost = not _account(state, group, [place.owned_types for place in bound.group])
    for cell, _ in group.held():
        cell.user = group
    state.groups[group.name] = group
    if lost:
        if group.guaranteed:
            state.demote(group, group.name)
        group.lazily_preempted_by, group.lazily_preempted_at = group.name, state.now
    return group


def _refuse_overlap(group: Group) -> None:
    seen: set[PhysicalCell] = set()
    for cell, _ in group.held():
        if cell.user is not None or cell in seen:
            holder = cell.user.name if cell.user is not None else group.name
            message = f'Group "{group.name}" is said to run on {cell.address}, which group "{holder}" uses.'
            raise Conflict("device-in-use", message)
        seen.add(cell)


def _account(state: State, group: Group, types: Sequence[Sequence[str]]) -> bool:
    """Occupy the group's devices as owned where possible; False when its guarantee is lost."""
    kept = True
    for slot, owned_types in zip(group.slots, types, strict=True):
        for at, cell in enumerate(slot.cells):
            if cell is None:
                continue
            owned_type = owned_types[at] if at < len(owned_types) else ""
            virtual = None
            if owned_type and group.priority > OPPORTUNISTIC and kept:
                virtual = _owned_for(state, group, cell, owned_type)
                kept = virtual is not None
            if virtual is not None:
                slot.owned[at] = virtual
                group.guaranteed = True
            state.occupy([(cell, virtual)], group.priority)
    return kept


def _owned_for(state: State, group: Group, leaf: PhysicalCell, owned_type: str) -> VirtualCell | None:
    """Return the virtual device for `leaf`, freeing it if needed; None if there is none or taking it is not safe."""
    level = state.forest.chains[leaf.kind.chain].level_of(owned_type)
    virtual = _owner_of(state, group, leaf, level) if level else None
    if virtual is None or virtual.vc != group.vc or virtual.root.pinned_id != group.pinned_cell:
        return None
    if leaf.virtual is virtual:
        return virtual
    if virtual.root.physical is not None and _inside(leaf, virtual.root.physical):
        return virtual if virtual.physical is None else None
    root_cell = leaf
    while root_cell.level < level:
        assert root_cell.parent is not None
        root_cell = root_cell.parent
    ledger = state.ledger_of(leaf)
    if not ledger.is_left(root_cell):
        return None
    if virtual.root.busy:
        state.evict(virtual.root, group.name)
    return virtual if virtual.root.physical is None and ledger.safe_to_take(root_cell) else None


def _inside(leaf: PhysicalCell, cell: PhysicalCell) -> bool:
    """Return whether `leaf` is `cell` or inside it."""
    at: PhysicalCell | None = leaf
    while at is not None and at is not cell:
        at = at.parent
    return at is not None


def _owner_of(state: State, group: Group, cell: PhysicalCell, level: int) -> VirtualCell | None:
    """Return the virtual cell that `cell` is bound to or would get.

    An unbound one gets the least used virtual cell at each level, from the owned cell down.
    """
    if cell.virtual is not None:
        return cell.virtual
    if cell.level == level:
        tenant = state.forest.tenants.get(group.vc)
        if tenant is None:
            return None
        if group.pinned_cell:
            return None
        cells = tenant.owned.get(cell.kind.chain)
        return _least_used(cells[level], group.priority) if cells is not None else None
    if cell.parent is None:
        return None
    parent = _owner_of(state, group, cell.parent, level)
    return _least_used(parent.children, group.priority) if parent is not None else None


def _least_used(cells: Sequence[VirtualCell], priority: int) -> VirtualCell | None:
    """Return the first unused and unbound of `cells`, else the one with the lowest priority below `priority`."""
    best: VirtualCell | None = None
    for cell in cells:
        if not cell.busy:
            if cell.physical is None:
                return cell
        elif cell.priority < priority and (best is None or cell.priority < best.priority):
            best = cell
    return best
