"""Walk through the gangs of one group in order, leaving out durations that would only be refused again.

The gangs of a group differ at most by their durations. What one of them is refused for holds for the later ones too,
unless something has been taken or evicted since, or a shorter one ends before the head of the queue starts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import overload

from corral.model.requests import GangRequest
from corral.scheduler.policy.order import QueueKey
from corral.scheduler.queues.waiting_queue import Group


class Run(Sequence[GangRequest]):
    """The gangs of a group from index `first` up to, but not including, `end()`; they may be placed together.

    The end is asked for only when a gang beside the first matters.
    """

    def __init__(self, group: Group, first: int, end: Callable[[], int]) -> None:
        self._group = group
        self._first = first
        self._end = end
        self._length = 0

    def __len__(self) -> int:
        if not self._length:
            self._length = self._end() - self._first
        return self._length

    @overload
    def __getitem__(self, at: int) -> GangRequest: ...

    @overload
    def __getitem__(self, at: slice) -> list[GangRequest]: ...

    def __getitem__(self, at: int | slice) -> GangRequest | list[GangRequest]:
        keys, entries = self._group.keys, self._group.entries
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            return [entries[key].request for key in keys[self._first + start : self._first + stop : step]]
        return entries[keys[self._first + at]].request


class Walk:
    """The gangs of a group that a cycle still has to handle."""

    __slots__ = ("_open", "group", "passable", "refused_at", "turn")

    def __init__(self, group: Group) -> None:
        self.group = group
        self.refused_at: int | None = None
        """The cycle's count of changes when a gang of the group was refused last; None: none was refused yet."""
        self.turn = 0.0
        """The turn, as a key has it, of the gang that was refused last."""
        self.passable = False
        """Whether it was refused only for the head's sake, so that gangs that end before it starts may fit."""
        self._open: list[tuple[QueueKey, int]] | None = None
        """A heap of the next key of each duration that is left; None: all durations are left."""

    def duration(self, at: int) -> int:
        """Return the duration of the gang at an index, in seconds; 0 for none."""
        return self.group.entries[self.group.keys[at]].request.max_duration_seconds

    def run_end(self, first: int, end: int) -> int:
        """Return the index up to which the gangs from `first` on have one duration, at most `end`: O(log n)."""
        keys, durations = self.group.keys, self.group.durations
        if len(durations) == 1 or end - first <= 1:
            return end
        same = durations[self.duration(first)]
        begin = bisect_left(same, keys[first])
        low, high = 1, min(end - first, len(same) - begin)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if keys[first + middle - 1] == same[begin + middle - 1] else (low, middle - 1)
        return first + low

    def after(self, first: int, count: int) -> int | None:
        """Return the index of the next gang after `count` gangs of one duration from `first` on; None if none is left."""
        keys = self.group.keys
        if self._open is None:
            return first + count if first + count < len(keys) else None
        duration = self.duration(first)
        same = self.group.durations[duration]
        following = bisect_right(same, keys[first + count - 1])
        if following < len(same):
            heappush(self._open, (same[following], duration))
        return self._next()

    def without(self, first: int, keep: Callable[[int], bool] | None = None) -> int | None:
        """Leave out the duration of the gang at `first`, and those that `keep` does not want, from now on.

        Returns the index of the next gang, or None if none is left.
        """
        group, own = self.group, self.duration(first)
        if len(group.durations) == 1:
            return None
        if self._open is None:
            self._open = []
            for duration, same in group.durations.items():
                if duration != own and (keep is None or keep(duration)):
                    following = bisect_right(same, group.keys[first])
                    if following < len(same):
                        self._open.append((same[following], duration))
            heapify(self._open)
        elif keep is not None:
            self._open = [each for each in self._open if keep(each[1])]
            heapify(self._open)
        return self._next()

    def _next(self) -> int | None:
        if not self._open:
            return None
        return bisect_left(self.group.keys, heappop(self._open)[0])
