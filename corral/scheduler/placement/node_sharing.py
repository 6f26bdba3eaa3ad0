"""Limit the room of a shape for gangs with exclusive, one-per-node or anti-affinity rules.

A `LimitedSlots` shows the room of a shape as `Slots` does, less the nodes that the gang may not use: used nodes if it wants
exclusive nodes, nodes with one of its tasks if it wants one task per node, and cells with jobs that anti-affinity
excludes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from corral.scheduler.cluster.allocation import CLOSED, Neighbour
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.shape_slots import Slots
from corral.scheduler.cluster.topology_level import resolve
from corral.scheduler.placement.engine_request import EngineRequest
from corral.scheduler.placement.node_fit import WHOLE

if TYPE_CHECKING:
    from corral.scheduler.placement.search import Spot

_ANY = 1 << 40


def limited(index: EngineIndex, ask: EngineRequest) -> bool:
    """Return whether room alone does not decide where the gang may go."""
    return ask.particular or bool(ask.tags and index.neighbours.anti_affinity)


def neighbours(ask: EngineRequest, job: str) -> tuple[Neighbour, ...]:
    """Return the gang's tags and anti-affinity rule for the index; empty if it has neither."""
    if not ask.tags and not ask.sharing.averse:
        return ()
    return (Neighbour(job, ask.tags, ask.sharing.averse, ask.sharing.averse_level),)


class Limits:
    """How many more tasks of one gang each node may take under its exclusive, one-per-node and anti-affinity rules."""

    def __init__(
        self, index: EngineIndex, ask: EngineRequest, job: str, near: Sequence[int], spots: list[Spot]
    ) -> None:
        self.index = index
        self.ask = ask
        self.job = job
        self.near = near
        """The node positions where tasks of the job already run."""
        self.spots = spots
        """The spots of the search so far; the list grows during the search."""
        self._seen = (-1, -1)
        self._caps: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def own(self) -> Counter[int]:
        """Return the number of the gang's tasks by node position; all running tasks on a node count as one."""
        return Counter(self.near) + Counter(spot.at for spot in self.spots)

    def caps(self) -> NDArray[np.int64]:
        """Return by node position how many more tasks are allowed."""
        if self._seen == self.index.state:
            return self._caps
        index, sharing, own = self.index, self.ask.sharing, self.own()
        caps = np.full(len(index.free), _ANY, dtype=np.int64)
        if sharing.exclusive:
            most = np.fromiter((node.max_tasks for node in index.tree.nodes), dtype=np.int64, count=len(index.free))
            caps[np.array(index.tasks, dtype=np.int64) != most] = 0
            caps[list(own)] = _ANY
        if sharing.one_per_node:
            np.minimum(caps, 1, out=caps)
            caps[list(own)] = 0
        for start, end in self._kept_apart():
            caps[start:end] = 0
        self._caps, self._seen = caps, index.state
        return caps

    def _kept_apart(self) -> Iterator[tuple[int, int]]:
        """Yield the node ranges excluded by anti-affinity, in either direction."""
        ask, tree = self.ask, self.index.tree
        for at, here in self.index.neighbours.at.items():
            for near in here:
                if near.job == self.job:
                    continue
                depths = []
                if not set(ask.sharing.averse).isdisjoint(near.tags):
                    depths.append(ask.anti_affinity_depth)
                if not set(near.anti_affinity).isdisjoint(ask.tags):
                    depth = resolve(near.level, tree.levels)
                    depths.append(tree.node_depth if depth is None else min(depth, tree.node_depth))
                if depths:
                    cells = tree.cells[min(depths)]
                    cell = cells.of[at]
                    yield int(cells.starts[cell]), int(cells.ends[cell])

    def tasks(self, at: int) -> int:
        """Return how many more tasks the node's task limit allows, also on nodes that the gang itself has closed."""
        left = self.index.tasks[at]
        return left % CLOSED if self.ask.sharing.exclusive and left < 0 else left


class LimitedSlots:
    """The room of a shape for one gang; the counterpart of `Slots`, which shows it for all gangs."""

    def __init__(self, slots: Slots, limits: Limits) -> None:
        self.slots = slots
        self.limits = limits
        self.shape, self.size, self.depth, self.masks = slots.shape, slots.size, slots.depth, slots.masks
        self._seen = (-1, -1)
        self.room: NDArray[np.int64] = slots.room
        self.totals: list[NDArray[np.int64]] = []
        self.sync(limits.index)

    def sync(self, index: EngineIndex) -> LimitedSlots:
        """Update the room of nodes that changed since the last call."""
        if self._seen == index.state:
            return self
        self.slots.sync(index)
        caps = self.limits.caps()
        self.room = np.minimum(self.slots.room, caps // self.size)
        if self.limits.ask.sharing.exclusive:
            for at in self.limits.own():
                self.room[at] = self.measure(index, at)
        self.totals = [np.add.reduceat(self.room, level.starts) for level in index.tree.cells[:-1]]
        self.totals.append(self.room)
        self._seen = index.state
        return self

    def measure(self, index: EngineIndex, at: int, within: int = WHOLE) -> int:
        """Return how many blocks fit on a node now, using only devices of the mask `within`."""
        most = int(self.limits.caps()[at]) // self.size
        return min(most, self.slots.measure(index, at, within, self.limits.tasks(at))) if most else 0

    def tightest(self, blocks: int, start: int, end: int) -> int:
        """Return the position in [start, end) with the least room that holds `blocks`, or -1."""
        return next(self.tightest_first(blocks, start, end), -1)

    def tightest_first(self, blocks: int, start: int, end: int) -> Iterator[int]:
        """Yield all positions in [start, end) that hold `blocks`: in `Slots` order, then nodes of the gang's own."""
        room, least = self.room, max(1, blocks)
        given = set()
        for at in self.slots.tightest_first(least, start, end):
            if room[at] >= least:
                given.add(at)
                yield at
        for at in (start + np.flatnonzero(room[start:end] >= least)).tolist():
            if at not in given:
                yield at

    def order_key(self, at: int) -> int:
        """Return what a node is ordered by in `tightest_first`; nodes with equal ones are ordered by position."""
        return self.slots.order_key(at)
