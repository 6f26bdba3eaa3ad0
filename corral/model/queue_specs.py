"""Convert queue documents to the scheduler's queue specifications."""

from __future__ import annotations

from collections.abc import Mapping

from corral.kernel import units
from corral.model.queues import Amounts, CellQuota, QueueSpec, Reclaim, WithinQueue
from corral.spec import queue_amounts
from corral.spec.expanded_machines import PinnedCell, TypeLevel
from corral.spec.queue import QueueCells, QueueDocument
from corral.spec.quota_check import chain_and_type


def queue_spec(
    queue: QueueDocument, types: Mapping[str, TypeLevel] | None = None, pins: Mapping[str, str] | None = None
) -> QueueSpec:
    """Convert one queue document.

    `types` (`Machines.types`) define the cell types; an unknown type counts as a level of that name. `pins` are the
    scheduler's names of pinned cells. Guaranteed amounts are deserved too, whether or not the document repeats them.
    """
    guaranteed = _amounts(queue.guaranteed)
    return QueueSpec(
        name=queue.name,
        parent=queue.parent,
        weight=queue.weight,
        guaranteed=guaranteed,
        deserved=guaranteed | _amounts(queue.deserved),
        limit=_lower(queue.limit, queue.manager_limits.limit),
        borrowing_limit=_amounts(queue.borrowing_limit),
        lending_limit=_amounts(queue.lending_limit),
        cells=tuple(_quota(cells, types or {}) for cells in queue.cells),
        pinned_cells=tuple((pins or {}).get(name, name) for name in queue.pinned_cells),
        pinned_names=tuple(queue.pinned_cells),
        min_runtime_seconds=float(queue.min_runtime_seconds),
        user_limit=_lower(queue.user_limit, queue.manager_limits.user_limit),
        group_limit=_lower(queue.group_limit, queue.manager_limits.group_limit),
        within_queue=WithinQueue(queue.preemption.within_queue),
        reclaim=Reclaim(queue.preemption.reclaim),
        half_life_seconds=float(queue.half_life_seconds),
    )


def _amounts(written: Mapping[str, str]) -> Amounts:
    counted = queue_amounts.count(written)
    return {name: units.devices(amount) if name.startswith("devices") else amount for name, amount in counted.items()}


def _lower(own: Mapping[str, str], managers: Mapping[str, str]) -> Amounts:
    """For each resource, the lower of the queue's own limit and that of its managers."""
    found = _amounts(own)
    for name, amount in _amounts(managers).items():
        found[name] = min(amount, found.get(name, amount))
    return found


def _quota(cells: QueueCells, types: Mapping[str, TypeLevel]) -> CellQuota:
    chain, name = chain_and_type(cells.what)
    known = types.get(name) if cells.cell_type else None
    if known is None:
        return CellQuota(name, cells.count, cells.model, chain)
    return CellQuota(known.level, cells.count, cells.model or known.model, chain)


def pinned_names(engine: str, pinned: Mapping[str, PinnedCell]) -> dict[str, str]:
    """By document name, the name under which the scheduler finds each pinned cell.

    `ENGINE|LEVEL:CELL` above the node, `ENGINE|node:NODE` at it, `ENGINE|LEVEL:NAME/#DEVICE` (any of its devices)
    below.
    """
    names = {}
    for name, cell in pinned.items():
        node, indexes = cell.devices[0]
        if cell.level == "node":
            inside = f"{engine}/{node}"
        else:
            inside = cell.name or f"{engine}/{node}/#{indexes[0]}"
        names[name] = f"{engine}|{cell.level}:{inside}"
    return names
