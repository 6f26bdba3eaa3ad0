"""Explain a wait for a named pinned cell: its missing room, or an unknown name."""

from __future__ import annotations

from corral.model.plan import Reason, Reasons
from corral.model.requests import GangRequest
from corral.scheduler.placement.trial import Trial
from corral.spec.placement import pinned_cell


def in_several_cells(request: GangRequest) -> Reasons:
    """Return the reason for a gang with roles in different pinned cells: a search uses only one of them."""
    cells = {role.pinned_cell for role in request.roles if role.devices.count or role.devices.ids}
    return Reasons(Reason(*pinned_cell.unmet_by_several(cells)), possible=False)


def not_in_pinned_cell(trial: Trial, request: GangRequest) -> Reasons:
    """Return why a gang does not fit into the pinned cell that it names."""
    ownership, name = trial.cluster.ownership, request.pinned_cell
    found = ownership.pinned(request.queue, name)
    if found is None:
        there = ownership.pinned_names(request.queue)
        return Reasons(Reason(*pinned_cell.unknown(name, request.queue, there)), possible=False)
    view = found[1]
    whole = [role for role in request.roles if role.devices.share is None]
    needed = sum(role.minimum * (len(role.devices.ids) or role.devices.count) for role in whole)
    total = sum(mask.bit_count() for mask in view.allowed)
    free = sum(mask.bit_count() for mask in view.free)
    return Reasons(Reason(*pinned_cell.unmet(name, needed, free, total)), possible=needed <= total)
