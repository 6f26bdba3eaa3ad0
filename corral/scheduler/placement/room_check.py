"""Decide from cached totals whether a gang fits, so that the full search mostly runs for gangs that do."""

from __future__ import annotations

from collections.abc import Hashable

from corral.model.requests import GangRequest
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.placement.engine_request import EngineRequest
from corral.scheduler.placement.node_sharing import limited
from corral.scheduler.placement.trial import Trial


def has_room(trial: Trial, request: GangRequest, shape: Hashable) -> bool | None:
    """Return whether the gang would be placed now, at least with its minimum; None if only the search can tell."""
    if len(request.roles) != 1 or request.beside or request.network_rdma != "none" or request.pinned_cell:
        return None
    role = request.roles[0]
    least = max(1, role.minimum)
    for index in trial.cluster.engines.values():
        if index.unknown or not index.tree.nodes:
            continue
        ask = trial.engine_request(request, index, shape)
        if not _tells(index, ask):
            return None
        if not ask.unknown_level and _most_in_one_cell(index, ask) >= least:
            return True
    return False


def _tells(index: EngineIndex, ask: EngineRequest) -> bool:
    """Return whether room in one cell of the required level is all that the gang needs."""
    part = ask.parts[0]
    inside = max(ask.required, part.required) > index.tree.node_depth
    blocks = part.group_size > 1 or part.group_depth > index.tree.node_depth
    return ask.plain and not (inside or blocks or part.shape.share is not None or limited(index, ask))


def _most_in_one_cell(index: EngineIndex, ask: EngineRequest) -> int:
    part = ask.parts[0]
    totals = index.slots(part.shape).totals[max(ask.required, part.required)]
    return int(totals[0] if len(totals) == 1 else totals.max())
