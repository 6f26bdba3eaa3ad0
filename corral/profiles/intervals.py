"""Sets of moments as sorted intervals that do not touch: union, length, what two have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Interval = tuple[float, float]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The moments in any of the intervals."""
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if end <= begin:
            continue
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def length(intervals: Iterable[Interval]) -> float:
    """How long the moments of a union last."""
    return sum(end - begin for begin, end in intervals)


def common(first: Sequence[Interval], second: Sequence[Interval]) -> list[Interval]:
    """The moments in both of two unions."""
    found: list[Interval] = []
    at = other = 0
    while at < len(first) and other < len(second):
        begin, end = max(first[at][0], second[other][0]), min(first[at][1], second[other][1])
        if begin < end:
            found.append((begin, end))
        if first[at][1] < second[other][1]:
            at += 1
        else:
            other += 1
    return found


def without(first: Sequence[Interval], second: Sequence[Interval]) -> list[Interval]:
    """The moments in the first union that are not in the second."""
    found: list[Interval] = []
    other = 0
    for begin, end in first:
        while other < len(second) and second[other][1] <= begin:
            other += 1
        at = other
        while at < len(second) and second[at][0] < end:
            if second[at][0] > begin:
                found.append((begin, second[at][0]))
            begin = max(begin, second[at][1])
            at += 1
        if begin < end:
            found.append((begin, end))
    return found


def shares(intervals: Sequence[Interval], begin: float, end: float, columns: int) -> tuple[float, ...]:
    """The share of each of `columns` equal spans from `begin` to `end` that a union covers, to three digits."""
    width = (end - begin) / columns
    if width <= 0:
        return (0.0,) * columns
    covered = [0.0] * columns
    for first, last in intervals:
        at = max(0, min(columns - 1, int((first - begin) / width)))
        while at < columns and begin + at * width < last:
            left = begin + at * width
            covered[at] += max(0.0, min(last, left + width) - max(first, left))
            at += 1
    return tuple(min(1.0, round(each / width, 3)) for each in covered)
