"""Explain a wait for a named pinned cell: its missing room, or an unknown name."""

from __future__ import annotations

from corral.kernel.units import counted
from corral.model.plan import Reason, Reasons
from corral.model.requests import GangRequest
from corral.scheduler.placement.trial import Trial


def in_several_cells(request: GangRequest) -> Reasons:
    """Return the reason for a gang with roles in different pinned cells: a search uses only one of them."""
    cells = sorted({role.pinned_cell for role in request.roles if role.devices.count or role.devices.ids})
    where = " and ".join(f"the pinned cell {cell}" if cell else "no pinned cell" for cell in cells)
    message = (
        f"Its roles name {where}, and only the preset hived places the roles of one job in different cells; "
        "name one cell for all of them."
    )
    return Reasons(Reason("pinned-cells", message, {"cells": len(cells)}), possible=False)


def not_in_pinned_cell(trial: Trial, request: GangRequest) -> Reasons:
    """Return why a gang does not fit into the pinned cell that it names."""
    ownership, name = trial.cluster.ownership, request.pinned_cell
    found = ownership.pinned(request.queue, name)
    if found is None:
        names = ownership.pinned_names(request.queue)
        there = f"those it has are {', '.join(names)}" if names else "it has none"
        message = f"The queue {request.queue} has no pinned cell {name}; {there}."
        return Reasons(Reason("no-pinned-cell", message, {"cells": len(names)}), possible=False)
    view = found[1]
    whole = [role for role in request.roles if role.devices.share is None]
    needed = sum(role.minimum * (len(role.devices.ids) or role.devices.count) for role in whole)
    total = sum(mask.bit_count() for mask in view.allowed)
    free = sum(mask.bit_count() for mask in view.free)
    counts = {"needed": needed, "free": free, "total": total}
    asks = f"Needs {counted(needed, 'device')} in the pinned cell {name}"
    if needed > total:
        return Reasons(Reason("pinned-cell", f"{asks}, which has {total}.", counts), possible=False)
    scattered = ", but not as it asks for them" if free >= needed else ""
    return Reasons(Reason("pinned-cell", f"{asks}; {free} of {total} are free there{scattered}.", counts))
