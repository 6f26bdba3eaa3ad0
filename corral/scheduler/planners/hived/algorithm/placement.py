"""Find a place for a new group: choose chain and priority, place it on virtual cells, then map it to physical ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass
from typing import cast

from corral.kernel.errors import InvalidInput
from corral.scheduler.planners.hived.algorithm.buddy import to_physical
from corral.scheduler.planners.hived.algorithm.cells import GUARANTEED, CellState, PhysicalCell, VirtualCell
from corral.scheduler.planners.hived.algorithm.groups import Group, PodRequest, Slot, new_slots
from corral.scheduler.planners.hived.algorithm.state import State
from corral.scheduler.planners.hived.algorithm.topology import RankedNodes

Demoted = tuple[Group, list[list[VirtualCell | None]]]
"""A group that lost its guarantee, and the virtual cells that its devices had."""


@dataclass(frozen=True, slots=True)
class Found:
    """A placement for a whole group: its slots, and the chain they are in."""

    chain: str
    slots: list[Slot]


def find_placement(
    state: State, request: PodRequest, suggested: Set[str], demoted: list[Demoted] | None = None
) -> tuple[Found | None, str]:
    """Find a placement for the group of `request`, or return None and the reason.

    Groups of the same virtual cluster that allow it lose their guarantee here if the placement needs their cells. They
    are added to `demoted`. Raises InvalidInput when the virtual cluster, its pinned cell or its devices of that type do
    not exist.
    """
    request.check()
    tenant = state.forest.tenants.get(request.vc)
    if tenant is None:
        raise InvalidInput("unknown-virtual-cluster", f'There is no virtual cluster "{request.vc}".')
    nodes = None if request.ignore_suggested else suggested
    if request.pinned_cell:
        if request.pinned_cell not in tenant.pinned:
            message = f'Virtual cluster "{request.vc}" has no pinned cell "{request.pinned_cell}".'
            raise InvalidInput("unknown-pinned-cell", message)
        if request.priority < GUARANTEED:
            raise InvalidInput("bad-priority", f'Pod "{request.pod}" is opportunistic and names a pinned cell.')
        chain = tenant.pinned[request.pinned_cell].kind.chain
        return _in_chain(state, request, request.sizes(), chain, nodes, demoted)
    reason, chains = "", _chains(state, request)
    for chain in chains:
        found, why = _in_chain(state, request, request.sizes(), chain, nodes, demoted)
        if found is not None:
            return found, ""
        reason = why or reason
    if request.span_chains and len(chains) > 1:
        return _parted(state, request, chains, nodes, demoted)
    return None, reason or f"virtual cluster {request.vc} owns no devices"


def _parted(
    state: State, request: PodRequest, chains: list[str], nodes: Set[str] | None, told: list[Demoted] | None
) -> tuple[Found | None, str]:
    """Place the group over several chains, all or nothing; each chain takes the largest remaining pods that fit."""
    left, slots = request.sizes(), list[Slot]()
    demoted: list[Demoted] = []
    for chain in chains:
        part = _most(_view(state, request, chain), left, request.priority, nodes)
        if not part:
            continue
        found, _ = _in_chain(state, request, part, chain, nodes, demoted)
        if found is not None:
            slots += found.slots
            left = list((Counter(left) - Counter(part)).elements())
        if not left:
            if told is not None:
                told += demoted
            return Found(chains[0], sorted(slots, key=lambda slot: slot.size)), ""
    undo(state, demoted)
    return None, f"{len(left)} of {len(request.sizes())} pods do not fit into any of the chains {', '.join(chains)}"


def _most(
    view: RankedNodes[PhysicalCell] | RankedNodes[VirtualCell], left: list[int], priority: int, nodes: Set[str] | None
) -> list[int]:
    """Return the pods that fit on these nodes, larger ones first."""
    part: list[int] = []
    for size, count in sorted(Counter(left).items(), reverse=True):
        least, most = 0, count
        while least < most:
            middle = (least + most + 1) // 2
            fits = view.place(sorted([*part, *[size] * middle]), priority, nodes)[0] is not None
            least, most = (middle, most) if fits else (least, middle - 1)
        part += [size] * least
    return sorted(part)


def _chains(state: State, request: PodRequest) -> list[str]:
    """Return the chains to try, in order: those of the requested leaf type, and owned if the request is guaranteed."""
    by_type = state.forest.chains_of
    if request.leaf_type and request.leaf_type not in by_type:
        raise InvalidInput("unknown-device-type", f'The cluster has no devices of type "{request.leaf_type}".')
    wanted = [request.leaf_type] if request.leaf_type else list(by_type)
    usable = [
        chain
        for leaf_type in wanted
        for chain in by_type[leaf_type]
        if request.priority < GUARANTEED or (request.vc, chain) in state.owned_views
    ]
    if request.leaf_type and not usable:
        message = f'Virtual cluster "{request.vc}" owns no devices of type "{request.leaf_type}".'
        raise InvalidInput("unowned-device-type", message)
    return usable


def _view(state: State, request: PodRequest, chain: str) -> RankedNodes[PhysicalCell] | RankedNodes[VirtualCell]:
    """Return the nodes to choose from: all of the chain, or those that the virtual cluster owns."""
    if request.priority < GUARANTEED:
        return state.physical_views[chain]
    if request.pinned_cell:
        return state.pinned_views[request.vc, request.pinned_cell]
    return state.owned_views[request.vc, chain]


def _in_chain(
    state: State,
    request: PodRequest,
    sizes: list[int],
    chain: str,
    suggested: Set[str] | None,
    demoted: list[Demoted] | None = None,
) -> tuple[Found | None, str]:
    """Place pods of these sizes in one chain; groups that lose their guarantee for it are added to `demoted`."""
    view = _view(state, request, chain)
    if request.priority < GUARANTEED:
        cells, reason = cast("RankedNodes[PhysicalCell]", view).place(sizes, request.priority, suggested)
        if cells is None:
            return None, f"{reason} when scheduling in physical cluster"
        return Found(chain, new_slots(sizes, cells, None)), ""
    owned, reason = cast("RankedNodes[VirtualCell]", view).place(sizes, request.priority, suggested)
    if owned is None:
        return None, f"{reason} when scheduling in VC {request.vc}"
    lost = _demote_on(state, owned, request.group)
    placement = to_physical((leaf for leaves in owned for leaf in leaves), state.ledgers[chain], suggested)
    if placement is None:
        undo(state, lost)
        kind = "bad" if suggested is None else "bad or non-suggested"
        roots = ", ".join(dict.fromkeys(leaf.root.address for leaves in owned for leaf in leaves))
        return None, f"mapping the virtual placement (in {roots}) would need at least one {kind} node"
    if demoted is not None:
        demoted += lost
    return Found(chain, new_slots(sizes, [[placement[leaf] for leaf in leaves] for leaves in owned], owned)), ""


def _demote_on(state: State, owned: list[list[VirtualCell]], by: str) -> list[Demoted]:
    """Lazily preempt every group on a virtual placement that allows it."""
    demoted = []
    for leaf in (leaf for leaves in owned for leaf in leaves):
        cell = leaf.physical
        if cell is None or cell.state is not CellState.USED or not leaf.busy:
            continue
        user = cell.user
        if user is not None and user.guaranteed and user.lazy_preemption:
            demoted.append((user, state.demote(user, by)))
    return demoted


def undo(state: State, demoted: list[Demoted]) -> None:
    """Restore the guarantees that these groups lost."""
    for group, before in reversed(demoted):
        state.promote(group, before)
