"""Choose which devices of a node a task gets, close to each other and leaving the rest of the node whole.

A layout is the tree of cells inside a node; device sets are bit masks. Every answer is a pure function of the free mask
and is cached, so equal nodes share one table. The lowest common ancestor decides first (HiveD, OSDI 2020, section 3),
then the sum of measured links, then how whole the other cells stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from math import comb

_MOST_SETS = 4000
"""The most candidate sets that are all compared; above it the best-linked set is approximated greedily."""
_MOST_ANSWERS = 200_000

Depths = tuple[tuple[int, ...], ...]
Links = tuple[tuple[int, ...], ...]
Block = tuple[int, ...]


class Layout:
    """The cells inside a node as masks: `depths[0]` is the node, `depths[-1]` its single devices."""

    __slots__ = ("_allotted", "_chosen", "_nearest", "all", "depths", "families", "links")

    def __init__(self, depths: Depths, links: Links = (), families: Block = ()) -> None:
        self.depths = depths
        self.families = families
        """For each device that can be sliced, the mask of its slices."""
        self.all = depths[0][0]
        self.links = links if any(any(row) for row in links) else ()
        widths = [max((cell.bit_count() for cell in cells), default=0) for cells in depths]
        self._nearest = [depths[at] for at in sorted(range(len(depths)), key=lambda at: (widths[at], -at))]
        """The cells of each level, narrowest first; an NVLink island can be wider or narrower than a NUMA node."""
        self._chosen: dict[tuple[int, int], int] = {}
        self._allotted: dict[tuple[int, int, int, int, int], tuple[Block, ...]] = {}

    def room(self, free: int, size: int, devices: int, depth: int) -> int:
        """Return how many blocks of `size` tasks with `devices` each fit in `free`, a block per cell at `depth`."""
        if depth == 0:
            return free.bit_count() // devices // size
        return sum((free & cell).bit_count() // devices // size for cell in self.depths[depth])

    def choose(self, free: int, count: int) -> int:
        """Return the best `count` devices of `free`, which must hold that many."""
        key = (free, count)
        found = self._chosen.get(key)
        if found is None:
            if len(self._chosen) > _MOST_ANSWERS:
                self._chosen.clear()
            found = self._chosen[key] = free if free.bit_count() == count else self._best(free, count)
        return found

    def allot(self, free: int, blocks: int, size: int, devices: int, depth: int) -> tuple[Block, ...]:
        """Return device masks for `blocks` blocks of `size` tasks, close together; `room` must allow that many."""
        key = (free, blocks, size, devices, depth)
        found = self._allotted.get(key)
        if found is None:
            if len(self._allotted) > _MOST_ANSWERS:
                self._allotted.clear()
            tasks = self._blocks(free, blocks, size, devices, depth)
            found = self._allotted[key] = tuple(tasks)
        return found

    def narrowest(self, mask: int) -> int:
        """Return the deepest depth at which one cell contains all of `mask`."""
        for depth in range(len(self.depths) - 1, 0, -1):
            if any(mask & ~cell == 0 for cell in self.depths[depth]):
                return depth
        return 0

    def _blocks(self, free: int, blocks: int, size: int, devices: int, depth: int) -> Iterator[Block]:
        """Fill cells at `depth`: the tightest that holds all remaining blocks, or else the roomiest."""
        if depth == 0:
            yield from _chunks(self._tasks(free, blocks * size, devices), size)
            return
        cells = [free & cell for cell in self.depths[depth]]
        for cell, count in _share(blocks, [(cell.bit_count() // devices // size, cell) for cell in cells]):
            yield from _chunks(self._tasks(cell, count * size, devices), size)

    def _tasks(self, free: int, tasks: int, devices: int) -> list[int]:
        """Return the device masks of `tasks` tasks in tree order."""
        if devices == 1:
            chosen = self.choose(free, tasks)
            return [bit for bit in self.depths[-1] if bit & chosen]
        if tasks == 1:
            return [self.choose(free, devices)]
        below, inside = self._tightest(free, tasks, devices)
        children = [inside & cell for cell in below]
        out: list[int] = []
        for child, count in _share(tasks, [(child.bit_count() // devices, child) for child in children]):
            out.extend(self._tasks(child, count, devices))
        rest = inside & ~sum(out)
        while len(out) < tasks:
            out.append(self.choose(rest, devices))
            rest &= ~out[-1]
        return sorted(out, key=lambda mask: mask & -mask)

    def _tightest(self, free: int, tasks: int, devices: int) -> tuple[tuple[int, ...], int]:
        """Return the cells of the next narrower level, and the tightest cell that holds the tasks."""
        for below, level in pairwise(self._nearest):
            fits = [free & cell for cell in level if (free & cell).bit_count() // devices >= tasks]
            if fits:
                return below, min(fits, key=lambda cell: (cell.bit_count(), cell & -cell))
        raise ValueError(f"{free:b} has no room for {tasks} tasks of {devices} devices")

    def _best(self, free: int, count: int) -> int:
        for cells in self._nearest:
            fits = [free & cell for cell in cells if (free & cell).bit_count() >= count]
            if fits:
                return max(
                    (chosen for cell in fits for chosen in self._candidates(cell, count)),
                    key=lambda chosen: self._rank(free, chosen),
                )
        raise ValueError(f"{free:b} has no {count} devices")

    def _candidates(self, free: int, count: int) -> Iterator[int]:
        bits = [bit for bit in self.depths[-1] if bit & free]
        if comb(len(bits), count) <= _MOST_SETS:
            yield from map(sum, combinations(bits, count))
            return
        for seed in bits:
            chosen = seed
            for _ in range(count - 1):
                chosen |= max((bit for bit in bits if not bit & chosen), key=lambda bit: self._rank(free, chosen | bit))
            yield chosen

    def _rank(self, free: int, chosen: int) -> tuple[int, ...]:
        """Rank a device set, higher is better.

        The link sum counts first, then how whole the rest stays per level (deepest first), then the device order.
        """
        left = free & ~chosen
        levels = (self.families, *reversed(self.depths[:-1])) if self.families else reversed(self.depths[:-1])
        whole = (sum((left & cell).bit_count() ** 2 for cell in cells) for cells in levels)
        return (self.link_sum(chosen), *whole, -chosen)

    def link_sum(self, chosen: int) -> int:
        """Return the sum of the measured links over all pairs in `chosen`."""
        if not self.links:
            return 0
        members = indexes(chosen)
        return sum(self.links[a][b] for a, b in combinations(members, 2))


def _share(wanted: int, cells: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Divide `wanted` over (room, cell) pairs: to the tightest cell that holds the rest, else fill the roomiest one."""
    waiting = sorted((room, cell.bit_count(), cell & -cell, cell) for room, cell in cells if room)
    while wanted and waiting:
        at = next((i for i, entry in enumerate(waiting) if entry[0] >= wanted), None)
        if at is None:
            most = waiting[-1][0]
            at = next(i for i, entry in enumerate(waiting) if entry[0] == most)
        room, _, _, cell = waiting.pop(at)
        count = min(room, wanted)
        wanted -= count
        yield cell, count


def _chunks(tasks: list[int], size: int) -> Iterator[Block]:
    for start in range(0, len(tasks), size):
        yield tuple(tasks[start : start + size])


_INDEXES: dict[int, tuple[int, ...]] = {}


def indexes(mask: int) -> tuple[int, ...]:
    """Return the device indexes of a mask, ascending."""
    found = _INDEXES.get(mask)
    if found is None:
        if len(_INDEXES) > _MOST_ANSWERS:
            _INDEXES.clear()
        found = _INDEXES[mask] = tuple(i for i in range(mask.bit_length()) if mask >> i & 1)
    return found
