"""Why: whether a node will do can depend on who is there: gangs that care, and they alone, see room through this.

A `View` shows the room of a shape as `Slots` does, less what the gang may not take: nodes of others when it wants its
nodes for itself, nodes with a task of its own when it wants one each, cells with jobs that it or they keep away from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from corral.scheduler.asks import Ask
from corral.scheduler.fitting import WHOLE
from corral.scheduler.index import EngineIndex
from corral.scheduler.levels import resolve
from corral.scheduler.slots import Slots
from corral.scheduler.takes import CLOSED, Neighbour

if TYPE_CHECKING:
    from corral.scheduler.search import Spot

_ANY = 1 << 40


def limited(index: EngineIndex, ask: Ask) -> bool:
    """Whether room alone does not tell where a gang may be."""
    return ask.particular or bool(ask.tags and index.neighbours.averse)


def neighbours(ask: Ask, job: str) -> tuple[Neighbour, ...]:
    """What the gang is to those beside it; nothing when nobody need mind it."""
    if not ask.tags and not ask.company.averse:
        return ()
    return (Neighbour(job, ask.tags, ask.company.averse, ask.company.averse_level),)


class Limits:
    """How many tasks of one gang each node may still take, for reasons of company."""

    def __init__(self, index: EngineIndex, ask: Ask, job: str, near: Sequence[int], spots: list[Spot]) -> None:
        self.index = index
        self.ask = ask
        self.job = job
        self.near = near
        """Where tasks of the job run already."""
        self.spots = spots
        """What the search has placed; it changes as the search goes on."""
        self._seen = -1
        self._caps: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def own(self) -> Counter[int]:
        """By position how many tasks of the gang are there, running (as one) or placed by the search."""
        return Counter(self.near) + Counter(spot.at for spot in self.spots)

    def caps(self) -> NDArray[np.int64]:
        """By position how many tasks more."""
        if self._seen == self.index.changes:
            return self._caps
        index, company, own = self.index, self.ask.company, self.own()
        caps = np.full(len(index.free), _ANY, dtype=np.int64)
        if company.exclusive:
            most = np.fromiter((node.max_tasks for node in index.tree.nodes), dtype=np.int64, count=len(index.free))
            caps[np.array(index.tasks, dtype=np.int64) != most] = 0
            caps[list(own)] = _ANY
        if company.one_per_node:
            np.minimum(caps, 1, out=caps)
            caps[list(own)] = 0
        for start, end in self._kept_apart():
            caps[start:end] = 0
        self._caps, self._seen = caps, index.changes
        return caps

    def _kept_apart(self) -> Iterator[tuple[int, int]]:
        """The ranges of nodes where somebody is whom the gang keeps away from, or who keeps it away."""
        ask, tree = self.ask, self.index.tree
        for at, here in self.index.neighbours.at.items():
            for near in here:
                if near.job == self.job:
                    continue
                depths = []
                if not set(ask.company.averse).isdisjoint(near.tags):
                    depths.append(ask.averse_depth)
                if not set(near.averse).isdisjoint(ask.tags):
                    depth = resolve(near.level, tree.levels)
                    depths.append(tree.node_depth if depth is None else min(depth, tree.node_depth))
                if depths:
                    cells = tree.cells[min(depths)]
                    cell = cells.of[at]
                    yield int(cells.starts[cell]), int(cells.ends[cell])

    def tasks(self, at: int) -> int:
        """How many tasks more the node takes, were it only for its own number."""
        left = self.index.tasks[at]
        return left % CLOSED if self.ask.company.exclusive and left < 0 else left


class View:
    """The room of a shape for one gang, as `Slots` shows it for all."""

    def __init__(self, slots: Slots, limits: Limits) -> None:
        self.slots = slots
        self.limits = limits
        self.shape, self.size, self.depth, self.masks = slots.shape, slots.size, slots.depth, slots.masks
        self._seen = -1
        self.room: NDArray[np.int64] = slots.room
        self.totals: list[NDArray[np.int64]] = []
        self.sync(limits.index)

    def sync(self, index: EngineIndex) -> View:
        """Look again at what changed since the last time."""
        if self._seen == index.changes:
            return self
        self.slots.sync(index)
        caps = self.limits.caps()
        self.room = np.minimum(self.slots.room, caps // self.size)
        if self.limits.ask.company.exclusive:
            for at in self.limits.own():
                self.room[at] = self.measure(index, at)
        self.totals = [np.add.reduceat(self.room, level.starts) for level in index.tree.cells[:-1]]
        self.totals.append(self.room)
        self._seen = index.changes
        return self

    def measure(self, index: EngineIndex, at: int, within: int = WHOLE) -> int:
        """How many blocks fit on the node at a position now, using only devices of the mask `within`."""
        most = int(self.limits.caps()[at]) // self.size
        return min(most, self.slots.measure(index, at, within, self.limits.tasks(at))) if most else 0

    def tightest(self, blocks: int, start: int, end: int) -> int:
        """The position in [start, end) with the least room that holds `blocks`, or -1."""
        return next(self.tightest_first(blocks, start, end), -1)

    def tightest_first(self, blocks: int, start: int, end: int) -> Iterator[int]:
        """All positions in [start, end) that hold `blocks`: as `Slots` has them, then nodes of the gang's own."""
        room, least = self.room, max(1, blocks)
        given = set()
        for at in self.slots.tightest_first(least, start, end):
            if room[at] >= least:
                given.add(at)
                yield at
        for at in (start + np.flatnonzero(room[start:end] >= least)).tolist():
            if at not in given:
                yield at
