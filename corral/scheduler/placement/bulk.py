"""Place a run of equal small gangs node by node instead of one by one.

The result equals placing each gang by itself: the tightest node that holds one gang stays the tightest while it holds
another. Where the policy's *place* part chooses nodes, this is so only for a part that fills them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from corral.model.placement import Placement, TaskPlacement
from corral.model.requests import GangRequest
from corral.scheduler.cluster.allocation import allocation_of
from corral.scheduler.cluster.device_layout import indexes
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.placement.engine_request import EngineRequest
from corral.scheduler.placement.node_sharing import limited, neighbours
from corral.scheduler.placement.trial import Trial


def place_alike(trial: Trial, requests: Sequence[GangRequest], shape: Hashable, now: float) -> list[Placement]:
    """Place the first gangs of a run of one shape, as many as fit on single nodes without a search.

    The placements are held until the trial is undone.
    """
    first = requests[0]
    if not first.goes_anywhere:
        return []
    placed: list[Placement] = []
    for index in trial.cluster.engines.values():
        if len(placed) == len(requests):
            break
        if not index.unknown and index.tree.nodes:
            ask = trial.engine_request(first, index, shape)
            if _plain(index, ask):
                mark = index.mark()
                _fill(index, ask, requests, placed)
                trial.started(first, {index.tree.engine: mark}, now)
    return placed


def _plain(index: EngineIndex, ask: EngineRequest) -> bool:
    """Return whether looking at single nodes is enough for everything the gang asks."""
    node, part = index.tree.node_depth, ask.parts[0]
    levels = (ask.required, ask.preferred, part.required, part.preferred, part.group_depth)
    shape = part.shape
    if index.placing is not None and not index.placing.part.fills:
        return False
    if ask.unknown_level or shape.ids or shape.share is not None or index.tree.avoided:
        return False
    if not ask.plain or limited(index, ask):
        return False
    return max(levels) <= node


def _fill(index: EngineIndex, ask: EngineRequest, requests: Sequence[GangRequest], placed: list[Placement]) -> None:
    """Fill the tightest node, then the next, until no node holds a gang or a gang's inputs may break ties."""
    shape, notes = ask.parts[0].shape, ask.notes
    tasks = len(requests[0].roles[0].indexes)
    count = len(index.tree.nodes)
    while len(placed) < len(requests):
        slots = index.slots(shape)
        at = slots.tightest(tasks, 0, count)
        if at < 0:
            return
        gangs = min(int(slots.room[at]) // tasks, len(requests) - len(placed))
        node, layout, used = index.tree.nodes[at].name, index.tree.layouts[at], 0
        free = index.free[at] & slots.masks[at]
        before = len(placed)
        chosen = requests[before : before + gangs]
        for request in chosen:
            if request.inputs is not None:
                break
            role = request.roles[0]
            if shape.devices:
                blocks = layout.allot(free & ~used, tasks, 1, shape.devices, 0)
            else:
                blocks = ((0,),) * tasks
            for block in blocks:
                used |= block[0]
            placed.append(
                Placement(
                    tuple(
                        TaskPlacement(role.role, number, node, indexes(block[0]), order)
                        for order, (number, block) in enumerate(zip(role.indexes, blocks, strict=True))
                    ),
                    notes,
                )
            )
        done = len(placed) - before
        if not done:
            return
        near = tuple(each for request in chosen[:done] for each in neighbours(ask, request.job)) if ask.tags else ()
        index.take(allocation_of(shape, at, used, done * tasks, near=near))
