"""The critical path over the ranks of a job: for each stretch between two collectives, what the rank did that came last.

A collective ends on all its ranks together. So the time from the end of one to the end of the next is bound by the rank
that enters the next one last: what that rank did meanwhile is on the path, and the others waited for it. Which ranks a
collective has is told by its process group where the trace has that, and by when it ends.
"""

from __future__ import annotations

import bisect
import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final, NamedTuple

from corral.profiles.trace_report import PARTS, RankReport
from corral.profiles.trace_windows import Window

_MOST_SHIFT: Final = 3
_LEAST_COMMON: Final = 2
"""Collectives that ranks must have in common."""
_NEAR: Final = 0.1
"""The part of a collective's time by which its ends on two ranks may differ where both are in it for a shorter time."""
_NAMES: Final = 3
_LEAST_SECONDS: Final = 1e-6
"""Traces tell microseconds; less comes of rounding."""


class PathPart(NamedTuple):
    """A part of the critical path: what one rank did on it, and the operators that took most of that."""

    rank: str
    part: str
    """One of `PARTS`."""
    seconds: float
    share: float
    """Of the whole path."""
    names: tuple[str, ...]


def critical_path(ranks: Sequence[RankReport]) -> list[PathPart]:
    """The parts of the path, the longest first; none if the ranks have no collectives in common.

    The path is followed backwards from the collective that ends last: to the rank that entered it last, through what that
    rank did before, to its own collective before that, and so on. O(ranks x windows x log windows).
    """
    if len(ranks) == 1:
        return _summed([(ranks[0].rank, each) for each in ranks[0].windows])
    steps = _Collectives([each.windows for each in ranks]).backwards()
    return _summed([(ranks[at].rank, ranks[at].windows[number]) for at, number in steps])


_Place = tuple[int, int]
"""A rank, and the number of one of its windows."""


class _Collectives:
    """The collectives of all ranks, by what their ranks have in common, on one clock."""

    def __init__(self, windows: Sequence[Sequence[Window]]) -> None:
        offsets = _offsets(windows)
        self._spans = [
            [(each.entered - ahead, each.end - ahead) for each in own]
            for own, ahead in zip(windows, offsets, strict=True)
        ]
        self._windows = windows
        self._by_kind: dict[tuple[str, str], dict[int, list[tuple[float, int]]]] = {}
        for at, own in enumerate(windows):
            for number, each in enumerate(own):
                if each.collective:
                    of_kind = self._by_kind.setdefault(_kind(each), {})
                    of_kind.setdefault(at, []).append((self._spans[at][number][1], number))
        self._firsts: dict[int, int] = {}

    def backwards(self) -> list[_Place]:
        """The windows of the path, the last one first; none if fewer than two collectives are of several ranks."""
        last = self._last()
        if last is None:
            return []
        (rank, number), path, met = last, [], 0
        left = [len(own) for own in self._windows]  # of each rank, so that none is followed twice
        while number >= self._first(rank):
            same = [(at, each) for at, each in self._same(rank, number) if each < left[at]]
            met += len(same) > 1
            rank, number = max(same, key=lambda place: (self._spans[place[0]][place[1]][0], -place[0]))
            path.append((rank, number))
            for at, each in same:
                left[at] = each
            number -= 1
        return path if met >= _LEAST_COMMON else []

    def _last(self) -> _Place | None:
        """The last collective to end of those that several ranks have; of equals that of the first rank."""
        ends = heapq.merge(*map(self._ends, range(len(self._spans))), reverse=True)
        places = ((-at, number) for _, at, number in ends)
        return next((place for place in places if self._is_common(*place)), None)

    def _ends(self, rank: int) -> Iterator[tuple[float, int, int]]:
        """The ends of a rank's windows, the last one first: windows are in the order of their ends."""
        spans = self._spans[rank]
        for number in reversed(range(len(spans))):
            yield spans[number][1], -rank, number

    def _first(self, rank: int) -> int:
        """The number of a rank's first window that another rank has too; that after its last one if there is none."""
        if rank not in self._firsts:
            numbers = range(len(self._windows[rank]))
            self._firsts[rank] = next((each for each in numbers if self._is_common(rank, each)), len(numbers))
        return self._firsts[rank]

    def _is_common(self, rank: int, number: int) -> bool:
        """Whether a collective has other ranks; the search ends at the first of them."""
        return next(self._others(rank, number), None) is not None

    def _same(self, rank: int, number: int) -> list[_Place]:
        """A collective on its ranks."""
        return [(rank, number), *self._others(rank, number)]

    def _others(self, rank: int, number: int) -> Iterator[_Place]:
        """A collective on other ranks: of each the one of its kind that ends nearest to it, if they end together."""
        window, span = self._windows[rank][number], self._spans[rank][number]
        for at, ends in self._by_kind.get(_kind(window), {}).items():
            if at == rank:
                continue
            near = _nearest(ends, span[1])
            if _together(span, self._spans[at][near]):
                yield at, near


def _shift(first: Sequence[Window], other: Sequence[Window]) -> int:
    """By how many collectives `other` is ahead of `first`: that by which they end most nearly together."""

    def apart(shift: int) -> float:
        pairs = [(each.end, other[at + shift].end) for at, each in enumerate(first) if 0 <= at + shift < len(other)]
        return sum(abs(one - two) for one, two in pairs) / len(pairs) if pairs else float("inf")

    return min(range(-_MOST_SHIFT, _MOST_SHIFT + 1), key=lambda shift: (apart(shift), abs(shift)))


def _offsets(windows: Sequence[Sequence[Window]]) -> list[float]:
    """By how much each rank's clock is ahead of the first one's, as collectives end together.

    A rank may have begun its trace some collectives earlier; the clocks of nodes are taken to agree better than half a
    step. Where more collectives end together without it, as of ranks of different groups, no difference is assumed.
    """
    found = [0.0]
    for each in windows[1:]:
        shift = _shift(windows[0], each)
        pairs = zip(windows[0][max(0, -shift) :], each[max(0, shift) :], strict=False)
        same = [two.end - one.end for one, two in pairs if _kind(one) == _kind(two)]
        candidates = [median(same), 0.0] if same else [0.0]
        found.append(max(candidates, key=lambda ahead: _agreement(windows[0], each, ahead)))
    return found


def _agreement(one: Sequence[Window], other: Sequence[Window], ahead: float) -> tuple[int, float]:
    """How many collectives of two ranks end together if the other's clock is ahead, and how exactly."""
    ends = sorted((each.end - ahead, number) for number, each in enumerate(other))
    apart = []
    for each in one:
        near = other[_nearest(ends, each.end)]
        span = (near.entered - ahead, near.end - ahead)
        if _kind(near) == _kind(each) and _together((each.entered, each.end), span):
            apart.append(abs(each.end - span[1]))
    return len(apart), -sum(apart)


def _kind(window: Window) -> tuple[str, str]:
    return window.group, window.operation


def _nearest(ends: Sequence[tuple[float, int]], end: float) -> int:
    """The number beside the end that is nearest, of some in order."""
    place = bisect.bisect_left(ends, (end, 0))
    return min(ends[max(0, place - 1) : place + 1], key=lambda each: abs(each[0] - end))[1]


def _together(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two spans may be of one collective: its ranks are in it at the same time, and leave it together."""
    both = min(one[1], other[1]) - max(one[0], other[0])
    longest = max(one[1] - one[0], other[1] - other[0])
    return both >= 0 and abs(one[1] - other[1]) <= max(both, _NEAR * longest)


def _summed(path: Sequence[tuple[str, Window]]) -> list[PathPart]:
    seconds: Counter[tuple[str, str]] = Counter()
    names: dict[tuple[str, str], Counter[str]] = {}
    for rank, window in path:
        for part, took in zip(PARTS, window.parts, strict=True):
            if took < _LEAST_SECONDS:
                continue
            seconds[rank, part] += took  # type: ignore[assignment]
            known = names.setdefault((rank, part), Counter())
            if part == "computing":
                known.update(dict(window.names))
            elif part == "exposed_communication":
                known[window.collective] += took  # type: ignore[assignment]
    whole = sum(seconds.values())
    made = [
        PathPart(*key, took, took / whole, tuple(name for name, _ in names[key].most_common(_NAMES) if name))
        for key, took in seconds.items()
    ]
    return sorted(made, key=lambda each: (-each.seconds, each.rank, each.part))
