"""Why: how a new gang finds its place: in which chains, at which priority, first virtual, then physical."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from corral.kernel.errors import InvalidInput
from corral.scheduler.hived.buddy import to_physical
from corral.scheduler.hived.cells import GUARANTEED, CellState, PhysicalCell, VirtualCell
from corral.scheduler.hived.groups import Group, PodRequest, Slot, new_slots
from corral.scheduler.hived.state import State


@dataclass(frozen=True, slots=True)
class Found:
    """A placement for a whole group: its slots, and the chain they are in."""

    chain: str
    slots: list[Slot]


def find_placement(state: State, request: PodRequest, suggested: Set[str]) -> tuple[Found | None, str]:
    """A placement for the group of `request`, or None and why there is none now.

    Groups of the same virtual cluster that allow it lose their guarantee here if the placement needs their cells.
    Raises InvalidInput when the virtual cluster, its pinned cell or its devices of that type do not exist.
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
        return _guaranteed(state, request, tenant.pinned[request.pinned_cell].kind.chain, nodes)
    reason = ""
    for chain in _chains(state, request):
        if request.priority >= GUARANTEED:
            found, why = _guaranteed(state, request, chain, nodes)
        else:
            found, why = _opportunistic(state, request, chain, nodes)
        if found is not None:
            return found, ""
        reason = why or reason
    return None, reason or f"virtual cluster {request.vc} owns no devices"


def _chains(state: State, request: PodRequest) -> Iterator[str]:
    """The chains to be tried, in order: of the leaf type asked for or of all, and owned if the request is guaranteed."""
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
    yield from usable


def _opportunistic(
    state: State, request: PodRequest, chain: str, suggested: Set[str] | None
) -> tuple[Found | None, str]:
    sizes = request.sizes()
    cells, reason = state.physical_views[chain].place(sizes, request.priority, suggested)
    if cells is None:
        return None, f"{reason} when scheduling in physical cluster"
    return Found(chain, new_slots(sizes, cells, None)), ""


def _guaranteed(state: State, request: PodRequest, chain: str, suggested: Set[str] | None) -> tuple[Found | None, str]:
    sizes = request.sizes()
    if request.pinned_cell:
        view = state.pinned_views[request.vc, request.pinned_cell]
    else:
        view = state.owned_views[request.vc, chain]
    owned, reason = view.place(sizes, request.priority, suggested)
    if owned is None:
        return None, f"{reason} when scheduling in VC {request.vc}"
    demoted = _demote_on(state, owned, request.group)
    placement = to_physical((leaf for leaves in owned for leaf in leaves), state.ledgers[chain], suggested)
    if placement is None:
        for group, before in reversed(demoted):
            state.promote(group, before)
        kind = "bad" if suggested is None else "bad or non-suggested"
        roots = ", ".join(dict.fromkeys(leaf.root.address for leaves in owned for leaf in leaves))
        return None, f"mapping the virtual placement (in {roots}) would need at least one {kind} node"
    cells: list[list[PhysicalCell]] = [[placement[leaf] for leaf in leaves] for leaves in owned]
    return Found(chain, new_slots(sizes, cells, owned)), ""


def _demote_on(
    state: State, owned: list[list[VirtualCell]], by: str
) -> list[tuple[Group, list[list[VirtualCell | None]]]]:
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
