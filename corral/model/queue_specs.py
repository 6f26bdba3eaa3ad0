"""Why: the scheduler counts in whole units; queue documents speak in words, and one function joins the two."""

from __future__ import annotations

from corral.model.queues import CellQuota, QueueSpec, Reclaim, WithinQueue
from corral.spec import amounts
from corral.spec.queue import QueueDocument


def queue_spec(queue: QueueDocument) -> QueueSpec:
    """What the scheduler is told of a queue; a cell quota's level is the level or the type that the document names.

    What is guaranteed is deserved too, whether or not the document repeats it.
    """
    guaranteed = amounts.count(queue.guaranteed)
    return QueueSpec(
        name=queue.name,
        parent=queue.parent,
        weight=queue.weight,
        guaranteed=guaranteed,
        deserved=guaranteed | amounts.count(queue.deserved),
        limit=amounts.count(queue.limit),
        borrowing_limit=amounts.count(queue.borrowing_limit),
        lending_limit=amounts.count(queue.lending_limit),
        cells=tuple(CellQuota(cells.what, cells.count, cells.model) for cells in queue.cells),
        pinned_cells=tuple(queue.pinned_cells),
        min_runtime_seconds=float(queue.min_runtime_seconds),
        user_limit=amounts.count(queue.user_limit),
        group_limit=amounts.count(queue.group_limit),
        within_queue=WithinQueue(queue.preemption.within_queue),
        reclaim=Reclaim(queue.preemption.reclaim),
        half_life_seconds=float(queue.half_life_seconds),
    )
