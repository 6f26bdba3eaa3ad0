"""Recount, compare and hash the kept HiveD state."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from corral.scheduler.planners.hived.algorithm.cell_ledger import Ledger
from corral.scheduler.planners.hived.algorithm.cells import LEAF, OPPORTUNISTIC, Cell, PhysicalCell, VirtualCell
from corral.scheduler.planners.hived.algorithm.groups import Group, GroupState
from corral.scheduler.planners.hived.algorithm.state import State


def broken_guarantees(state: State) -> list[str]:
    """Describe, with numbers, where a guarantee is broken.

    A guarantee is broken where fewer cells are left than the virtual clusters own and do not use, or where splitting
    would leave one of them short.
    """
    found = []
    for name, ledger in state.ledgers.items():
        spare = ledger.spare(ledger.free_counts(), ledger.needed)
        for level in ledger.levels:
            left, needed = ledger.left[level], ledger.needed[level]
            if left < needed or spare[level] < 0:
                found.append(
                    f"chain {name} level {level}: {left} left, {needed} owned and unused, {spare[level]} spare"
                )
    return found


def differences(state: State) -> list[str]:
    """Describe every difference between the kept state and a recount; empty if there is none."""
    found = list(_groups(state))
    leaves = {cell: (group, owned) for group in state.groups.values() for cell, owned in _current(group)}
    found += _devices(state, leaves)
    for ledger in state.ledgers.values():
        found += _accounts(ledger)
        found += _physical(ledger)
    for tenant in state.forest.tenants.values():
        for root in [*tenant.pinned.values(), *(root for roots in tenant.roots.values() for root in roots)]:
            found += _virtual(root)
    return found


def digest(state: State) -> str:
    """Return a hash of everything that later decisions depend on."""
    hashed = blake2b(digest_size=16)
    for line in _lines(state):
        hashed.update(line.encode() + b"\n")
    return hashed.hexdigest()


def _lines(state: State) -> Iterator[str]:
    yield repr((sorted(state.bad_nodes), sorted(state.bad_devices)))
    for name in sorted(state.groups):
        group = state.groups[name]
        yield repr((name, group.vc, group.priority, group.state.value, group.guaranteed, sorted(group.preempting)))
        for slot in group.slots:
            owned = [each.address if each is not None else "" for each in slot.owned]
            yield repr((slot.node, slot.devices, owned, slot.pod.pod if slot.pod is not None else ""))
    for chain, ledger in sorted(state.ledgers.items()):
        yield repr((chain, [[cell.address for cell in cells] for cells in ledger.free], sorted(ledger.doomed.items())))


def _current(group: Group) -> Iterator[tuple[PhysicalCell, VirtualCell | None]]:
    """Yield the devices charged to a group, without those that a preemptor has already taken over."""
    for cell, owned in group.held():
        if cell.reserver is None or cell.reserver is group:
            yield cell, owned


def _groups(state: State) -> Iterator[str]:
    holder: dict[PhysicalCell, str] = {}
    for group in state.groups.values():
        waits = group.state is GroupState.PREEMPTING
        if group.guaranteed != any(owned is not None for _, owned in group.held()):
            yield f"group {group.name} has guaranteed {group.guaranteed}, and its virtual cells say otherwise"
        if not waits and not group.pods:
            yield f"group {group.name} is kept, and none of its pods runs"
        for cell, _ in group.held():
            if (cell.reserver if waits else cell.user) is not group:
                yield f"{cell.address} does not know group {group.name}"
            if not waits and holder.setdefault(cell, group.name) != group.name:
                yield f"{cell.address} is used by groups {holder[cell]} and {group.name}"


def _devices(state: State, leaves: dict[PhysicalCell, tuple[Group, VirtualCell | None]]) -> Iterator[str]:
    for cell in state.forest.devices.values():
        group, owned = leaves.get(cell, (None, None))
        if group is None and (cell.user is not None or cell.reserver is not None):
            yield f"{cell.address} is held by a group that is not kept"
        expected = {} if group is None else {group.priority if owned is not None else OPPORTUNISTIC: 1}
        if cell.used != expected:
            yield f"{cell.address} counts {cell.used}, and its holder makes it {expected}"
        if owned is not None and (cell.virtual is not owned or owned.used != expected):
            yield f"{cell.address} is not bound to {owned.address}, or that counts {owned.used} for {expected}"
        if cell.healthy != state.is_healthy(cell):
            yield f"{cell.address} has healthy {cell.healthy}, and its node and device are known otherwise"


def _miscounted(cell: Cell) -> bool:
    """Return whether a cell's counts differ from the sum over its children."""
    if cell.children:
        total: dict[int, int] = {}
        for child in cell.children:
            for priority, count in child.used.items():
                total[priority] = total.get(priority, 0) + count
        if total != cell.used:
            return True
    return cell.busy != (sum(cell.used.values()) if cell.used else 0)


def _physical(ledger: Ledger) -> Iterator[str]:
    for cells in ledger.chain.cells[LEAF:]:
        for cell in cells:
            if _miscounted(cell):
                yield f"{cell.address} counts {cell.used} and {cell.busy} busy, and its children otherwise"
            if cell.children and cell.healthy != all(child.healthy for child in cell.children):
                yield f"{cell.address} has healthy {cell.healthy}, unlike its children"
            virtual, parent = cell.virtual, cell.parent
            if virtual is not None and virtual.physical is not cell:
                yield f"{cell.address} is bound to {virtual.address}, which is not bound to it"
            if virtual is not None and virtual.parent is not None and virtual.parent.physical is not parent:
                yield f"{cell.address} is bound to {virtual.address}, and their parents are not bound to each other"
            if virtual is not None and virtual.busy == 0 and cell.healthy and not cell.pinned:
                yield f"{cell.address} is bound to {virtual.address} without need"
            inside = parent is not None and parent.virtual is not None
            if inside and not cell.healthy and virtual is None:
                yield f"{cell.address} is bad, and its owner does not see it"


def _virtual(cell: VirtualCell) -> Iterator[str]:
    if _miscounted(cell):
        yield f"{cell.address} counts {cell.used} and {cell.busy} busy, and its children otherwise"
    if cell.physical is not None and cell.physical.virtual is not cell:
        yield f"{cell.address} is bound to {cell.physical.address}, which is not bound to it"
    if cell.physical is None and cell.busy:
        yield f"{cell.address} is used and not bound"
    for child in cell.children:
        yield from _virtual(child)


def _accounts(ledger: Ledger) -> Iterator[str]:
    chain = ledger.chain
    free: list[set[int]] = [set() for _ in chain.levels]
    left: list[set[int]] = [set() for _ in chain.levels]
    unused = {vc: list(counts) for vc, counts in ledger.owns().items()}
    for top in chain.cells[chain.top]:
        _walk(top, free, left, unused)
    for level in ledger.levels:
        cells = chain.cells[level]
        kept = {cell.ordinal for cell in ledger.free[level]}
        if kept != free[level] or len(ledger.free[level]) != len(free[level]):
            yield f"chain {chain.name} level {level}: the free list has {sorted(kept)}, not {sorted(free[level])}"
        if {cell.ordinal for cell in cells if cell.free} != free[level]:
            yield f"chain {chain.name} level {level}: cells are marked free otherwise"
        if ledger.left[level] != len(left[level]):
            yield f"chain {chain.name} level {level}: {ledger.left[level]} left, counted {len(left[level])}"
        bad = {at for at in left[level] if not cells[at].healthy}
        if ledger.bad[level] != bad:
            yield f"chain {chain.name} level {level}: bad are {sorted(ledger.bad[level])}, counted {sorted(bad)}"
        if ledger.needed[level] != sum(counts[level] for counts in unused.values()):
            yield f"chain {chain.name} level {level}: {ledger.needed[level]} needed, counted otherwise"
    if ledger.unused != unused:
        yield f"chain {chain.name}: unused are {ledger.unused}, counted {unused}"
    yield from _doomed(ledger)


def _walk(cell: PhysicalCell, free: list[set[int]], left: list[set[int]], unused: dict[str, list[int]]) -> bool:
    """Record the free cells inside a cell with nothing free above it; return whether the whole cell is free."""
    if cell.virtual is not None:
        unused[cell.virtual.vc][cell.level] -= 1
        return False
    whole = [_walk(child, free, left, unused) for child in cell.children]
    if all(whole):
        for child in cell.children:
            free[child.level].discard(child.ordinal)
        free[cell.level].add(cell.ordinal)
        left[cell.level].add(cell.ordinal)
    return all(whole)


def _doomed(ledger: Ledger) -> Iterator[str]:
    for vc, levels in ledger.doomed.items():
        roots = [root for cells in ledger.owned[vc] for root in cells]
        idle = sorted((root.level, root.physical.ordinal) for root in roots if root.physical and not root.busy)
        if idle != [(level, ordinal) for level, cells in enumerate(levels) for ordinal in cells]:
            yield f"chain {ledger.chain.name}: {vc} has {levels} doomed, and these owned cells are bound idly: {idle}"
        for level in ledger.levels:
            healthy = ledger.left[level] - len(ledger.bad[level])
            if levels[level] and ledger.unused[vc][level] < healthy:
                yield f"chain {ledger.chain.name} level {level}: {vc} has doomed cells, and {healthy} healthy are left"
