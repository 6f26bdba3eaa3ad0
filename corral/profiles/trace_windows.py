"""What a rank did between its collectives: the stretches of its trace that other ranks wait for."""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from corral.profiles.intervals import Interval
from corral.profiles.trace_events import Event

MOST_WINDOWS: Final = 2_000
_NAMES: Final = 3
_BETWEEN_TWO: Final = re.compile(
    r"(?:[a-z]+:)?_?(?:i?send|i?recv|recv_any_source|sendrecv)\b|ncclDevKernel_SendRecv|ncclKernel_SendRecv"
)
"""A message from one rank to another: one calls it a send, the other a receive."""


class Window(NamedTuple):
    """The stretch of a rank's trace from the end of one collective to the end of the next; times in seconds."""

    end: float
    entered: float
    """When it began the collective that ends the stretch."""
    collective: str
    """Its name; "" where the trace ends instead."""
    parts: tuple[float, float, float, float, float]
    """Seconds of computing, exposed communication, copies, waits for data, and idle."""
    names: tuple[tuple[str, float], ...]
    """The operators or kernels with the most time of their own."""
    group: str = ""
    """The process group of the collective, where the trace tells it."""
    operation: str = ""
    """What the ranks of a collective have in common beside its group."""


def windows_of(
    parts: Sequence[Sequence[Interval]], collectives: Sequence[Event], work: Sequence[Event], begin: float, end: float
) -> tuple[Window, ...]:
    """The first 2,000 stretches of a trace from `begin` to `end`, in microseconds; without collectives the whole one.

    `parts` are unions of moments that do not overlap each other. O(events log events).
    """
    ended = sorted(collectives, key=lambda each: each.end)[:MOST_WINDOWS]
    ends = [each.end for each in ended] or [end]
    sums = [_sums(part, begin, ends) for part in parts]
    names = _names(work, begin, ends)
    made = []
    for number, at in enumerate(ends):
        taken = [each[number] / 1e6 for each in sums]
        idle = max(0.0, (at - (ends[number - 1] if number else begin)) / 1e6 - sum(taken))
        entered, name = (ended[number].begin, ended[number].name) if ended else (end, "")
        three = tuple((each, seconds / 1e6) for each, seconds in names[number].most_common(_NAMES))
        of, what = (ended[number].group, _operation(ended[number])) if ended else ("", "")
        five = (taken[0], taken[1], taken[2], taken[3], idle)
        made.append(Window(at / 1e6, entered / 1e6, name, five, three, of, what))
    return tuple(made)


def _operation(event: Event) -> str:
    """What a collective is called on all its ranks."""
    told = event.operation or event.name
    return "message" if _BETWEEN_TWO.match(told) or _BETWEEN_TWO.match(event.name) else told


def _sums(part: Sequence[Interval], begin: float, ends: Sequence[float]) -> list[float]:
    """How much of a union lies in each stretch."""
    found = [0.0] * len(ends)
    for first, last in part:
        at, left = bisect.bisect_right(ends, first), max(first, begin)
        while at < len(ends) and left < last:
            right = min(last, ends[at])
            found[at] += max(0.0, right - left)
            left, at = right, at + 1
    return found


def _names(work: Sequence[Event], begin: float, ends: Sequence[float]) -> list[Counter[str]]:
    """The time of their own of operators in each stretch; one that began in it counts for it."""
    found: list[Counter[str]] = [Counter() for _ in ends]
    open_calls: dict[tuple[str, str], list[Event]] = {}
    for event in sorted(work, key=lambda each: (each.begin, -each.length)):
        stack = open_calls.setdefault((event.process, event.thread), [])
        while stack and stack[-1].end <= event.begin:
            stack.pop()
        at = bisect.bisect_right(ends, event.begin)
        if at < len(ends):
            found[at][event.name] += event.length  # type: ignore[assignment]
        if stack and (above := bisect.bisect_right(ends, stack[-1].begin)) < len(ends):
            found[above][stack[-1].name] -= event.length  # type: ignore[assignment]
        stack.append(event)
    return found
