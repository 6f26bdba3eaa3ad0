"""The cached room of a task shape per node and cell, since it is asked thousands of times per cycle.

A `Slots` follows the journal of its engine and updates only changed nodes. Nodes are kept in buckets by (room, free
devices), stored as integers used as bit sets over positions. The tightest node is therefore found without a scan, and
ties never depend on history.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from corral.kernel.amounts import UNBOUNDED
from corral.scheduler.placement.node_fit import WHOLE, fitting_devices
from corral.scheduler.placement.shape import TaskShape

if TYPE_CHECKING:
    from corral.scheduler.cluster.engine_index import EngineIndex
    from corral.scheduler.cluster.ranked_slots import Placing

SECOND = 1 << 24
"""The factor of a bucket key, first * SECOND + second; both parts stay below it."""
_FEW = 64
"""The most nodes whose bit sets are made one by one: numpy's calls take as long as 100 nodes in Python."""


class Slots:
    """How many blocks of `size` tasks of one shape fit on each node of an engine, each block in a cell at `depth`.

    `depth` counts from the node (0) down. `room` and `totals` are views on buffers; read them after `sync`.
    """

    def __init__(self, index: EngineIndex, shape: TaskShape, size: int, depth: int) -> None:
        self.shape = shape
        self.size = size
        self.depth = depth
        self._cursor = 0
        self._again: set[int] = set()
        """The nodes to be looked at again, because changes were undone that it has followed."""
        self._fitting: list[int] = []
        self.masks = fitting_devices(index.tree, shape)
        single = size == 1 and not depth and shape.devices and shape.share is None
        self._plain = type(self) is Slots and bool(single) and not (shape.ids or shape.more)
        """Whether only whole devices, processors and memory count, and tasks one by one."""
        self._rebuild(index)

    def sync(self, index: EngineIndex) -> Slots:
        """Update the room of the nodes that changed since the last call."""
        if self._cursor == index.changes and not self._again:
            return self
        begun = index.changes - len(index.journal)
        if self._cursor < begun:
            self._rebuild(index)
        else:
            nodes = set(index.journal[self._cursor - begun :])
            if self._again:
                nodes |= self._again
                self._again.clear()
            if self._plain:
                self._follow_plainly(index, nodes)
            else:
                self._follow(index, nodes)
            self._cursor = index.changes
        if index.trail:
            index.followers[self] = None
        return self

    def _follow(self, index: EngineIndex, nodes: Iterable[int]) -> None:
        free, masks, where = index.free, self.masks, self._where
        whole = self.shape.devices and self.shape.share is None
        for at in nodes:
            if not whole or where[at] >= 0 or free[at] & masks[at]:
                self._update(index, at)

    def _follow_plainly(self, index: EngineIndex, nodes: Iterable[int]) -> None:
        """Do what `_follow` does for single tasks of whole devices, in half of the time."""
        free, masks, where, left = index.free, self.masks, self._where, index.tasks
        devices, cpu, memory, shm = self.shape.devices, self.shape.cpu, self.shape.memory, self.shape.shm
        for at in nodes:
            fitting = free[at] & masks[at]
            if not fitting and where[at] < 0:
                continue
            count = fitting.bit_count()
            room = count // devices
            if room > left[at]:
                room = left[at]
            if cpu and room * cpu > index.cpu[at]:
                room = index.cpu[at] // cpu
            if memory and room * memory > index.memory[at]:
                room = index.memory[at] // memory
            if shm and room * shm > index.shm[at]:
                room = index.shm[at] // shm
            if room > 0 and index.usable[at]:
                self._set(index, at, room, min(room, SECOND - 1) * SECOND + count)
            else:
                self._set(index, at, 0, -1)

    def look_again(self, nodes: Sequence[int], changes: int) -> None:
        """Take back that it followed changes of these nodes, all made after the count was `changes`."""
        if self._cursor > changes:
            self._cursor = changes
            self._again.update(nodes)

    def ranked_by(self, index: EngineIndex, placing: Placing) -> Slots:
        """Update the room, and the order of nodes where the *place* part of a policy decides it."""
        return self.sync(index)

    def measure(self, index: EngineIndex, at: int, within: int = WHOLE, tasks: int | None = None) -> int:
        """Return how many blocks fit on a node now, using only devices of the mask `within`.

        `tasks` overrides the number of further tasks that the index allows there.
        """
        shape, size = self.shape, self.size
        tasks = index.tasks[at] if tasks is None else tasks
        if tasks <= 0 or not index.usable[at]:
            return 0
        room = tasks // size
        if shape.devices:
            free = index.free[at] & self.masks[at] & within
            if shape.ids:
                named = self.masks[at]
                room = min(room, int(free == named and size == 1 and named != 0))
            elif self.depth == 0:
                room = min(room, free.bit_count() // shape.devices // size)
            else:
                room = min(room, index.tree.layouts[at].room(free, size, shape.devices, self.depth))
        elif self.masks[at] == 0:
            return 0
        return self.amounts_room(index, at, room) if room else 0

    def amounts_room(self, index: EngineIndex, at: int, room: int) -> int:
        """Return how many of `room` blocks find the resources they need besides devices."""
        shape, size = self.shape, self.size
        if shape.cpu:
            room = min(room, index.cpu[at] // (shape.cpu * size))
        if shape.memory:
            room = min(room, index.memory[at] // (shape.memory * size))
        if shape.shm:
            room = min(room, index.shm[at] // (shape.shm * size))
        for name, amount in shape.more:
            column = index.more.get(name)
            if column is not None:
                room = min(room, column[at] // (amount * size))
            elif name not in UNBOUNDED:
                return 0
        return max(room, 0)

    def most(self, depth: int) -> int:
        """Return the most blocks that one cell at a depth holds; read it after `sync`."""
        if depth < len(self._totals):
            return max(self._totals[depth])
        return int(self.room.max())

    def fitting(self, start: int, end: int) -> int:
        """Return how many devices of the nodes in [start, end) fit the shape, used or not."""
        if not self._fitting:
            self._fitting = [0, *accumulate(mask.bit_count() for mask in self.masks)]
        return self._fitting[end] - self._fitting[start]

    def tightest(self, blocks: int, start: int, end: int) -> int:
        """Return the position in [start, end) with the least room that holds `blocks`, or -1.

        On ties the node with the fewest free devices is taken.
        """
        return next(self.tightest_first(blocks, start, end), -1)

    def tightest_first(self, blocks: int, start: int, end: int) -> Iterator[int]:
        """Yield all positions in [start, end) that hold `blocks`, tightest first."""
        inside = -1 if end - start == len(self._kept) else (1 << end) - (1 << start)
        for bits in [self._buckets[key] & inside for key in self._from(blocks)]:
            while bits:
                lowest = bits & -bits
                yield lowest.bit_length() - 1
                bits ^= lowest

    def order_key(self, at: int) -> int:
        """Return what a node is ordered by in `tightest_first`; nodes with equal ones are ordered by position."""
        return self._where[at]

    def _from(self, blocks: int) -> list[int]:
        """Return the bucket keys of nodes that hold `blocks`, tightest first."""
        if self.shape.devices:
            return self._keys[bisect_left(self._keys, blocks * SECOND) :]
        return [key for key in self._keys if key % SECOND >= blocks]

    def _rebuild(self, index: EngineIndex) -> None:
        count = len(index.tree.nodes)
        self._kept = self._measure_all(index)
        self.room: NDArray[np.int64] = np.frombuffer(self._kept, dtype=np.int64)
        keys = self._all_keys(index)
        self._where: list[int] = keys.tolist()
        self._buckets = _bit_sets(keys)
        self._keys = sorted(self._buckets)
        self._totals = [
            array("q", np.add.reduceat(self.room, level.starts).tobytes() if count else b"")
            for level in index.tree.cells[:-1]
        ]
        self.totals: list[NDArray[np.int64]] = [np.frombuffer(total, dtype=np.int64) for total in self._totals]
        self.totals.append(self.room)
        self._cursor = index.changes
        self._again.clear()

    def _measure_all(self, index: EngineIndex) -> array[int]:
        """Measure every node, by columns where possible."""
        shape, size, count = self.shape, self.size, len(index.free)
        largest = max(self.masks, default=0)
        if shape.ids or self.depth or size > 1 or largest >> 63 or (not shape.devices and 0 in self.masks):
            return array("q", (self.measure(index, at) for at in range(count)))
        room = self.amounts_column(index)
        if shape.devices:
            np.minimum(room, np.bitwise_count(self.fitting_free(index)) // shape.devices, out=room)
        return array("q", room.tobytes())

    def amounts_column(self, index: EngineIndex) -> NDArray[np.int64]:
        """Return by node position how many tasks find the resources they need besides devices."""
        shape, count = self.shape, len(index.free)
        room = np.array(index.tasks, dtype=np.int64)
        columns = [(index.cpu, shape.cpu), (index.memory, shape.memory), (index.shm, shape.shm)]
        for name, amount in shape.more:
            if name in index.more or name not in UNBOUNDED:
                columns.append((index.more.get(name, [0] * count), amount))
        for column, wanted in columns:
            if wanted:
                np.minimum(room, np.array(column, dtype=np.int64) // wanted, out=room)
        room *= np.frombuffer(index.usable, dtype=np.bool_)
        return np.maximum(room, 0)

    def fitting_free(self, index: EngineIndex) -> NDArray[np.uint64]:
        """Return by node position the mask of free fitting devices, which must fit in 63 bits.

        A node may have other devices beyond these bits.
        """
        if max(index.free, default=0) >> 63:
            return np.array([free & mask for free, mask in zip(index.free, self.masks, strict=True)], dtype=np.uint64)
        return np.array(index.free, dtype=np.uint64) & np.array(self.masks, dtype=np.uint64)

    def _all_keys(self, index: EngineIndex) -> NDArray[np.int64]:
        """Return the bucket key of every node, by columns where possible."""
        if not self.shape.devices or max(self.masks, default=0) >> 63:
            return np.array([self._key(index, at, room) for at, room in enumerate(self._kept)], dtype=np.int64)
        keys = np.minimum(self.room, SECOND - 1) * SECOND + np.bitwise_count(self.fitting_free(index))
        return np.where(self.room > 0, keys, -1)

    def _update(self, index: EngineIndex, at: int) -> None:
        room = self.measure(index, at)
        self._set(index, at, room, self._key(index, at, room))

    def _set(self, index: EngineIndex, at: int, room: int, key: int) -> None:
        """Note the room and the bucket key of a node."""
        more = room - self._kept[at]
        if more:
            self._kept[at] = room
            for level, total in zip(index.tree.cells, self._totals, strict=False):
                total[level.of[at]] += more
        old = self._where[at]
        if key == old:
            return
        bit = 1 << at
        self._where[at] = key
        if old >= 0:
            rest = self._buckets[old] ^ bit
            if rest:
                self._buckets[old] = rest
            else:
                del self._buckets[old]
                del self._keys[bisect_left(self._keys, old)]
        if key >= 0:
            if key in self._buckets:
                self._buckets[key] |= bit
            else:
                self._buckets[key] = bit
                insort(self._keys, key)

    def _key(self, index: EngineIndex, at: int, room: int) -> int:
        """Return the bucket key of a node, or -1 for no room.

        A task without devices prefers the node with the fewest free devices, then the tightest.
        """
        if not room:
            return -1
        if self.shape.devices:
            return min(room, SECOND - 1) * SECOND + (index.free[at] & self.masks[at]).bit_count()
        return index.free[at].bit_count() * SECOND + min(room, SECOND - 1)

    def same_as(self, other: Slots) -> bool:
        """Return whether both hold the same data; both must be in sync with their engines."""
        return (
            self._kept == other._kept
            and self._where == other._where
            and self._buckets == other._buckets
            and self._keys == other._keys
            and self._totals == other._totals
        )

    def copy(self) -> Slots:
        """Return an independent copy that follows a copy of the engine."""
        twin = object.__new__(type(self))
        twin.shape, twin.size, twin.depth, twin.masks = self.shape, self.size, self.depth, self.masks
        twin._kept = self._kept[:]
        twin.room = np.frombuffer(twin._kept, dtype=np.int64)
        twin._where, twin._buckets, twin._keys = self._where[:], dict(self._buckets), self._keys[:]
        twin._totals = [total[:] for total in self._totals]
        twin.totals = [*(np.frombuffer(total, dtype=np.int64) for total in twin._totals), twin.room]
        twin._plain = self._plain
        twin._cursor, twin._again, twin._fitting = self._cursor, set(self._again), self._fitting
        return twin


def _bit_sets(keys: NDArray[np.int64]) -> dict[int, int]:
    """Return for each key except -1 the bit set of the positions that have it."""
    out: dict[int, int] = {}
    if len(keys) <= _FEW:
        for at, key in enumerate(keys.tolist()):
            if key != -1:
                out[key] = out.get(key, 0) | 1 << at
        return out
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    for members in np.split(order, starts)[1:]:
        present = np.zeros(len(keys), dtype=np.bool_)
        present[members] = True
        out[int(keys[members[0]])] = int.from_bytes(np.packbits(present, bitorder="little").tobytes(), "little")
    return out
