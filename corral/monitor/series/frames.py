"""The values of the last steps in memory: one frame for each step, with the values of all series."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from corral.monitor.series.grid import FINE

OPEN_STEPS: Final = 2
"""The latest steps, which still take values."""


class Frame(NamedTuple):
    """The values of one step by the numbers of their series, which ascend."""

    numbers: array[int]
    values: array[float]

    def value(self, number: int) -> float | None:
        """The value of a series; None if it has none."""
        at = bisect_left(self.numbers, number)
        return self.values[at] if at < len(self.numbers) and self.numbers[at] == number else None


NOTHING: Final = Frame(array("I"), array("d"))


class Frames:
    """Frames by step; the latest ones are open."""

    def __init__(self) -> None:
        self._closed: dict[int, Frame] = {}
        self._open: dict[int, dict[int, float]] = {}

    @property
    def newest(self) -> int:
        """The newest step; 0 if there is none."""
        return max((*self._open, *self._closed), default=0)

    def add(self, step: int, values: dict[int, float]) -> None:
        """Add values at a step, in place of those of the same series; values of a closed step go to the oldest open one."""
        step = max(step, self._first_open)
        self._open.setdefault(step, {}).update(values)
        for old in sorted(each for each in self._open if each < self._first_open):
            self._closed[old] = self._frame(self._open.pop(old))

    def add_past(self, step: int, values: dict[int, float]) -> None:
        """Add values at a step that may be closed."""
        if step >= self._first_open:
            self.add(step, values)
            return
        before = self._closed.get(step, NOTHING)
        self._closed[step] = self._frame(dict(zip(before.numbers, before.values, strict=True)) | values)

    def restore(self, step: int, frame: Frame) -> None:
        """Take over a frame that was stored."""
        self._closed[step] = frame

    def steps(self) -> list[int]:
        """All steps that have a frame, in ascending order."""
        return sorted({*self._closed, *self._open})

    def frame(self, step: int) -> Frame:
        """The frame of a step; an open one as it is now."""
        values = self._open.get(step)
        return self._closed.get(step, NOTHING) if values is None else self._frame(values)

    def between(self, begin: int, end: int) -> Iterator[tuple[int, Frame]]:
        """The frames of the steps from `begin` to before `end`, in ascending order."""
        for step in self.steps():
            if begin <= step < end:
                yield step, self.frame(step)

    def drop(self, begin: int, end: int) -> None:
        """Forget the frames from `begin` to before `end`."""
        for held in (self._closed, self._open):
            for step in [each for each in held if begin <= each < end]:
                del held[step]

    def hours(self) -> set[int]:
        """The chunks that frames lie in."""
        return {step // FINE.steps for step in (*self._closed, *self._open)}

    @property
    def _first_open(self) -> int:
        return max(self._open, default=self.newest) - OPEN_STEPS + 1

    def _frame(self, values: dict[int, float]) -> Frame:
        numbers = array("I", sorted(values))
        if self._closed:
            before = self._closed[next(reversed(self._closed))].numbers
            if before == numbers:
                numbers = before  # most frames have the same series, and share their numbers
        return Frame(numbers, array("d", map(values.__getitem__, numbers)))
