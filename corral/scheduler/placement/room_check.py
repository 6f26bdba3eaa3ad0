"""Decide from cached totals whether a gang fits, so that the full search mostly runs for gangs that do."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np

from corral.model.requests import GangRequest
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.future_record import Place
from corral.scheduler.cluster.shape_slots import Slots
from corral.scheduler.placement.engine_request import EngineRequest
from corral.scheduler.placement.node_sharing import limited
from corral.scheduler.placement.trial import Trial

_MOST: Final = 256
"""The most shapes whose checks are kept: their slots come on top of those that an index keeps."""
_UNKNOWN: Final = object()


class RoomCheck:
    """Whether a gang has room, asked again and again while resources are taken and released.

    The cluster's machines must stay the same, and no gang with a rule about its neighbours may come.
    """

    __slots__ = ("_least", "_totals")

    def __init__(self, least: int, totals: list[tuple[EngineIndex, Slots, int]]) -> None:
        self._least = least
        self._totals = totals

    def __call__(self) -> bool:
        """Return whether the gang would be placed now, at least with its minimum."""
        for index, slots, depth in self._totals:  # noqa: SIM110 - a generator takes longer
            if slots.sync(index).most(depth) >= self._least:
                return True
        return False

    def places(self) -> frozenset[Place]:
        """Return the nodes with room for a task of the gang now."""
        return frozenset(
            (index.tree.engine, at)
            for index, slots, _ in self._totals
            for at in np.flatnonzero(slots.sync(index).room).tolist()
        )


def room_check(trial: Trial, request: GangRequest, shape: Hashable) -> RoomCheck | None:
    """Return the check of a gang's room; None if only the search can tell. It is kept until machines change."""
    for index in trial.cluster.engines.values():
        if index.placing is not None:
            return _made(trial, request, shape)  # by slots that are in the order of the policy's part
    known = trial.cluster.room_checks
    found = known.get(shape, _UNKNOWN)
    if found is _UNKNOWN:
        found = _made(trial, request, shape)
        if not request.tags:  # with tags it may depend on the gangs that run
            if len(known) >= _MOST:
                known.clear()
            known[shape] = found
    assert found is None or isinstance(found, RoomCheck)
    return found


def _made(trial: Trial, request: GangRequest, shape: Hashable) -> RoomCheck | None:
    if not request.goes_anywhere:
        return None
    totals: list[tuple[EngineIndex, Slots, int]] = []
    for index in trial.cluster.engines.values():
        if index.unknown or not index.tree.nodes:
            continue
        ask = trial.engine_request(request, index, shape)
        if not _tells(index, ask):
            return None
        if not ask.unknown_level:
            part = ask.parts[0]
            totals.append((index, index.slots(part.shape), max(ask.required, part.required)))
    return RoomCheck(max(1, request.roles[0].minimum), totals)


def has_room(trial: Trial, request: GangRequest, shape: Hashable) -> bool | None:
    """Return whether the gang would be placed now, at least with its minimum; None if only the search can tell."""
    check = room_check(trial, request, shape)
    return None if check is None else check()


def _tells(index: EngineIndex, ask: EngineRequest) -> bool:
    """Return whether room in one cell of the required level is all that the gang needs."""
    part = ask.parts[0]
    inside = max(ask.required, part.required) > index.tree.node_depth
    blocks = part.group_size > 1 or part.group_depth > index.tree.node_depth
    return ask.plain and not (inside or blocks or part.shape.share is not None or limited(index, ask))
