"""The room of a task shape per node, with the nodes in the order of a policy's *place* part instead of tightest first.

The part decides only which of the nodes with room comes first. Room, totals and buckets stay those of `Slots`, so what
fits does not depend on the part.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corral.scheduler.cluster.device_fraction import FractionSlots
from corral.scheduler.cluster.node_room import node_room
from corral.scheduler.cluster.shape_slots import SECOND, Slots

if TYPE_CHECKING:
    from corral.scheduler.cluster.allocation import DeviceFraction
    from corral.scheduler.cluster.engine_index import EngineIndex
    from corral.scheduler.placement.shape import TaskShape
    from corral.scheduler.policy.place import Place


_MOST_RANKS: Final = 1 << 14
"""The most ranks that are kept for one shape; beyond it all are forgotten."""


@dataclass(frozen=True)
class Placing:
    """A *place* part with what it prepared for a plan."""

    part: Place
    context: object


class RankedSlots(Slots):
    """Room as in `Slots`; nodes by the rank that a part gives them, on ties the one with the least room.

    A sorted list holds one number for each node with room: rank, room and position, 24 bits each. A change of a node
    costs one call of the part and O(log n), apart from moving numbers in memory.
    """

    def __init__(self, index: EngineIndex, shape: TaskShape, size: int, depth: int, placing: Placing) -> None:
        self.placing: Placing = placing
        self._ranks: dict[tuple[int, int], int] = {}
        """The ranks by `placing`, by the numbers of the states of nodes and the devices that fit there."""
        self._apart: bool | None = None
        """Whether nodes of one state are asked about one by one; None: not known yet."""
        super().__init__(index, shape, size, depth)

    def tightest(self, blocks: int, start: int, end: int) -> int:
        """Return the position in [start, end) with the lowest rank that holds `blocks`, or -1."""
        return next(self._found(blocks, start, end), -1)

    def tightest_first(self, blocks: int, start: int, end: int) -> Iterator[int]:
        """Yield all positions in [start, end) that hold `blocks`, the lowest rank first."""
        yield from [*self._found(blocks, start, end)]

    def order_key(self, at: int) -> int:
        """Return the rank and the room of a node, or -1 for no room."""
        return self._entries[at] >> 24

    def _found(self, blocks: int, start: int, end: int) -> Iterator[int]:
        last = SECOND - 1
        for entry in self._order:
            at = entry & last
            if start <= at < end and entry >> 24 & last >= blocks:
                yield at

    def ranked_by(self, index: EngineIndex, placing: Placing) -> Slots:
        """Update the room; rank all nodes again if `placing` is not what they were ranked by."""
        if self.placing is placing:
            return self.sync(index)
        super().sync(index)
        if self.placing is not placing:
            self.placing, self._ranks, self._apart = placing, {}, None
            self._rank_all(index)
        return self

    def _rebuild(self, index: EngineIndex) -> None:
        super()._rebuild(index)
        self._rank_all(index)

    def _rank_all(self, index: EngineIndex) -> None:
        numbers = self._numbers(index)
        if numbers is None:
            self._entries = [self._entry(index, at) if room else -1 for at, room in enumerate(self._kept)]
        else:
            known, masks, entries = self._ranks, self.masks, []
            for at, room in enumerate(self._kept):
                if not room:
                    entries.append(-1)
                    continue
                rank = known.get((numbers[at], masks[at]))
                if rank is None:
                    rank = self._rank_of_state(index, at, numbers[at])
                entries.append((rank * SECOND + min(room, SECOND - 1)) * SECOND + at)
            self._entries = entries
        self._order = sorted([entry for entry in self._entries if entry >= 0])

    def _update(self, index: EngineIndex, at: int) -> None:
        super()._update(index, at)
        entry, old = self._entry(index, at) if self._kept[at] else -1, self._entries[at]
        if entry == old:
            return
        self._entries[at] = entry
        if old >= 0:
            del self._order[bisect_left(self._order, old)]
        if entry >= 0:
            insort(self._order, entry)

    def _entry(self, index: EngineIndex, at: int) -> int:
        return (self._rank(index, at) * SECOND + min(self._kept[at], SECOND - 1)) * SECOND + at

    def _rank(self, index: EngineIndex, at: int) -> int:
        """Return the part's rank of a node; nodes that it ranks alike are asked about once."""
        numbers = self._numbers(index)
        if numbers is None:
            return self._ask(index, at)
        found = self._ranks.get((numbers[at], self.masks[at]))
        return self._rank_of_state(index, at, numbers[at]) if found is None else found

    def _numbers(self, index: EngineIndex) -> list[int] | None:
        """Return the numbers of the states of nodes; None where nodes of one state may have different ranks."""
        if self._apart is None:
            share = self.shape.share  # bytes are another part of a device with more memory
            self._apart = (share is not None and bool(share.memory_bytes)) or not getattr(
                self.placing.part, "ranks_alike", False
            )
        return None if self._apart or index.states is None else index.states.sync(index)

    def _rank_of_state(self, index: EngineIndex, at: int, number: int) -> int:
        """Ask the part for the rank of a node whose state has a number, and keep it."""
        if len(self._ranks) >= _MOST_RANKS:
            self._ranks.clear()
        found = self._ranks[number, self.masks[at]] = self._ask(index, at)
        return found

    def _ask(self, index: EngineIndex, at: int) -> int:
        return self.placing.part.rank(
            self.shape, node_room(index, self.shape, self.masks[at], at), self.placing.context
        )

    def same_as(self, other: Slots) -> bool:
        """Return whether both hold the same data; both must be in sync with their engines."""
        return (
            isinstance(other, RankedSlots)
            and super().same_as(other)
            and self._entries == other._entries
            and self._order == other._order
        )

    def copy(self) -> RankedSlots:
        """Return an independent copy that follows a copy of the engine."""
        twin = super().copy()
        assert isinstance(twin, RankedSlots)
        twin.placing, twin._ranks, twin._apart = self.placing, dict(self._ranks), self._apart
        twin._entries, twin._order = self._entries[:], self._order[:]
        return twin


class RankedFractionSlots(RankedSlots, FractionSlots):
    """The same for tasks that request a part of a device; the part of the policy may also choose the device."""

    def give(self, index: EngineIndex, at: int, within: int, tasks: int) -> list[DeviceFraction]:
        """Return parts for `tasks` tasks, which must have room, of the devices that the policy's part chooses.

        Devices that it does not name come last, the fullest first.
        """
        choices, choose = self.choices(index, at, within), getattr(self.placing.part, "device", None)
        if choose is not None and len(choices) > 1:
            room = node_room(index, self.shape, self.masks[at], at)
            rank = {device: rank for rank, device in enumerate(choose(self.shape, room, self.placing.context))}
            choices.sort(key=lambda entry: rank.get(entry[0].device, len(rank)))
        return [part for part, count in choices for _ in range(count)][:tasks]


def slots_for(index: EngineIndex, shape: TaskShape, size: int, depth: int, placing: Placing | None) -> Slots:
    """Return new slots for a shape; tasks whose parts are to be spread keep their own order."""
    if shape.share is None:
        return Slots(index, shape, size, depth) if placing is None else RankedSlots(index, shape, size, depth, placing)
    if placing is None or shape.share.spread:
        return FractionSlots(index, shape, size, depth)
    return RankedFractionSlots(index, shape, size, depth, placing)
