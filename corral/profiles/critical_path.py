"""The critical path over the ranks of a job: for each stretch between two collectives, what the rank did that came last.

A collective ends on all ranks together. So the time from the end of one to the end of the next is bound by the rank that
enters the next one last: what that rank did meanwhile is on the path, and the others waited for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from corral.profiles.trace_report import PARTS, RankReport
from corral.profiles.trace_windows import Window

_MOST_SHIFT: Final = 3
_LEAST_COMMON: Final = 2
"""Collectives that ranks must have in common."""
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
    """The parts of the path, the longest first; none if the ranks have no collectives in common. O(ranks x windows)."""
    if len(ranks) == 1:
        return _summed([(ranks[0].rank, each) for each in ranks[0].windows])
    aligned = _aligned(ranks)
    path = []
    for number in range(min(map(len, aligned), default=0)):
        entered = [windows[number].entered - offset for windows, offset in zip(aligned, _offsets(aligned), strict=True)]
        last = max(range(len(ranks)), key=entered.__getitem__)
        path.append((ranks[last].rank, aligned[last][number]))
    return _summed(path)


def _aligned(ranks: Sequence[RankReport]) -> list[tuple[Window, ...]]:
    """The windows of all ranks from the first to the last collective that all have; [] if they have none in common.

    A rank may have begun its trace one collective earlier; the clocks of nodes are taken to agree better than half a step.
    """
    first = ranks[0].windows
    shifts = [0, *(_shift(first, each.windows) for each in ranks[1:])]
    if any(not each.windows for each in ranks):
        return []
    begin = max(0, *(-each for each in shifts))
    cut = [each.windows[begin + shift :] for each, shift in zip(ranks, shifts, strict=True)]
    count = min(map(len, cut))
    return [each[:count] for each in cut] if count >= _LEAST_COMMON else []


def _shift(first: Sequence[Window], other: Sequence[Window]) -> int:
    """By how many collectives `other` is ahead of `first`: that by which they end most nearly together."""

    def apart(shift: int) -> float:
        pairs = [(each.end, other[at + shift].end) for at, each in enumerate(first) if 0 <= at + shift < len(other)]
        return sum(abs(one - two) for one, two in pairs) / len(pairs) if pairs else float("inf")

    return min(range(-_MOST_SHIFT, _MOST_SHIFT + 1), key=lambda shift: (apart(shift), abs(shift)))


def _offsets(aligned: Sequence[Sequence[Window]]) -> list[float]:
    """By how much each rank's clock is ahead of the first one's, as collectives end together."""
    return [median(one.end - two.end for one, two in zip(each, aligned[0], strict=True)) for each in aligned]


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
