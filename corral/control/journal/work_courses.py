"""The course of a job's work from its beginning to its end, as a journal has it: a position for all that happened on it.

A position is the work that is done. So it means the same in another life in which the job has other sizes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import Final, NamedTuple

from corral.control.journal.pace import Pace
from corral.control.journal.recorded_work import RecordedWork, Said, Spell
from corral.kernel.ids import TaskKey

_SAME: Final = 1e-6
"""The part of itself by which work must be more to count as more."""


class End(NamedTuple):
    """A task ends by itself where the work has come to a position."""

    at: float
    code: int
    task: TaskKey | None = None
    was_at: float = -inf
    """When it did so in the journal, in seconds since 1970."""


@dataclass
class Course:
    """A job's work from its beginning until it ends by itself."""

    total: float = inf
    """All of the work; infinite: its end is not known."""
    ends: list[dict[TaskKey, list[End]]] = field(default_factory=list)
    """By attempt, or of all together if it resumes, and by task: where it ended by itself, in order."""
    last: End | None = None
    """The last of the ends; None: it is not known."""
    outlived: frozenset[TaskKey] = frozenset()
    """The tasks that went on after the last of the ends, until they were stopped."""
    sayings: list[list[tuple[float, Said]]] = field(default_factory=list)
    """What the job said, with positions, in order: by attempt, or of all attempts together if it resumes."""
    resumes: bool = False
    """Whether a preempted job goes on where it was."""
    until: float = inf
    """When it was over in the journal, in seconds since 1970."""
    parts: list[tuple[Spell, _Axis]] = field(default_factory=list)
    """The attempts that it took; all but the last one were preempted."""

    def said(self, attempt: int) -> list[tuple[float, Said]]:
        """What the job says in an attempt of the course, counted from 0."""
        return self.sayings[min(attempt, len(self.sayings) - 1)] if self.sayings else []

    def ends_of(self, attempt: int, task: TaskKey) -> Sequence[End]:
        """Where a task ends by itself in an attempt of the course, counted from 0."""
        return self.ends[min(attempt, len(self.ends) - 1)].get(task, ()) if self.ends else ()

    def attempt_at(self, at: float) -> int:
        """The attempt of the course that ran at a time, or that ran last before it, counted from 0."""
        return max(0, sum(spell.begun <= at for spell, _ in self.parts) - 1)

    def ended(self, at: float) -> dict[TaskKey, int]:
        """How many of its ends each task had behind it at a time; none where the next attempt begins anew."""
        begun = [spell for spell, _ in self.parts if spell.begun <= at]
        if not begun or not self.ends or (begun[-1].over and begun[-1].until <= at and not self.resumes):
            return {}
        ends = self.ends[min(len(begun), len(self.ends)) - 1]
        return {task: bisect_right(of, at, key=lambda end: end.was_at) for task, of in ends.items()}

    def position(self, at: float) -> float:
        """How far it had come at a time, in seconds since 1970."""
        begun = [(spell, axis) for spell, axis in self.parts if spell.begun <= at]
        if self.resumes:
            return min(self.total, sum(axis.at(at) for _, axis in begun))
        running = [axis.at(at) for spell, axis in begun[-1:] if not spell.over or at < spell.until]
        return min(self.total, sum(running))


@dataclass
class Unended:
    """The attempts after those of all courses: what the journal knows of a course whose end it does not tell."""

    course: Course
    done: float
    """The work of that which came furthest."""
    seconds: float
    """How long that ran."""
    speed: float
    """Its work in a second, at last."""


class _Axis:
    """The work of one attempt by time."""

    def __init__(self, spell: Spell, pace: Pace) -> None:
        self._times, self._done, self._speeds = [], list[float](), list[float]()
        done, last, speed = 0.0, spell.begun, 0.0
        for at, size in spell.sizes:
            done += (at - last) * speed
            last, speed = at, pace.of(size)
            self._times.append(at)
            self._done.append(done)
            self._speeds.append(speed)

    def at(self, time: float) -> float:
        """The work that is done at a time; it goes on at the last size."""
        number = bisect_right(self._times, time) - 1
        if number < 0:
            return 0.0
        return self._done[number] + (time - self._times[number]) * self._speeds[number]

    @property
    def speed(self) -> float:
        """The work in a second at the last size that had any."""
        return next((each for each in reversed(self._speeds) if each > 0), 0.0)


def courses_of(work: RecordedWork, pace: Pace, read_until: float) -> tuple[list[Course], Unended | None]:
    """The courses of a job that ended by themselves, in order, and what came after them.

    `read_until` is when the last step was made that was read, in seconds since 1970.
    """
    said, found, parts = work.said(), list[Course](), list[tuple[Spell, _Axis]]()
    for spell in work.spells:
        parts.append((spell, _Axis(spell, pace)))
        if spell.complete:
            found.append(_course(parts, said))
            parts = []
    return found, _unended(parts, said, read_until) if parts else None


def _course(parts: list[tuple[Spell, _Axis]], said: Sequence[Said]) -> Course:
    *before, (spell, axis) = parts
    own = axis.at(spell.ends[-1].at)
    lost = [each.at(of.until) for of, each in before]
    first = min((axis.at(end.at) for end in spell.ends if not end.code), default=own)
    resumes = any(each > first * (1 + _SAME) for each in lost)  # one that begins anew ends there, if not before
    offset = sum(lost) if resumes else 0.0
    course = Course(offset + own, outlived=spell.outlived, resumes=resumes, until=spell.until, parts=parts)
    last = _ends(spell, axis, offset)
    course.last = last[-1]
    ends, heard, passed = list[list[End]](), list[list[tuple[float, Said]]](), 0.0
    for (of, each), work in zip(before, lost, strict=True):
        ends.append(_ends(of, each, passed))
        heard.append(_heard(of, each, passed, said))
        passed += work if resumes else 0.0
    ends.append(last)
    heard.append(_heard(spell, axis, offset, said))
    if resumes:
        course.ends, course.sayings = [_by_task(chain.from_iterable(ends))], [list(chain.from_iterable(heard))]
        return course
    for part, done in enumerate(lost):  # an attempt that goes on for longer than it did goes on like the last one
        ends[part] += [each for each in last if each.at > done]
        heard[part] += [each for each in heard[-1] if each[0] > done]
    course.ends, course.sayings = [_by_task(each) for each in ends], heard
    return course


def _ends(spell: Spell, axis: _Axis, offset: float) -> list[End]:
    """Where tasks ended by themselves in an attempt that begins at a position."""
    return [End(offset + axis.at(at), code, task, at) for at, task, code in spell.ends]


def _by_task(ends: Iterable[End]) -> dict[TaskKey, list[End]]:
    found: dict[TaskKey, list[End]] = {}
    for end in ends:
        if end.task is not None:
            found.setdefault(end.task, []).append(end)
    return found


def _by_attempt(parts: list[tuple[Spell, _Axis]], said: Sequence[Said]) -> list[list[tuple[float, Said]]]:
    """What a job said in each of its attempts; one that goes on for longer then says what the last one said."""
    last = _heard(*parts[-1], 0.0, said)
    found = []
    for spell, axis in parts[:-1]:
        done = axis.at(spell.until)
        found.append([*_heard(spell, axis, 0.0, said), *(each for each in last if each[0] > done)])
    return [*found, last]


def _unended(parts: list[tuple[Spell, _Axis]], said: Sequence[Said], read_until: float) -> Unended:
    def done(part: tuple[Spell, _Axis]) -> float:
        spell, axis = part
        return axis.at(spell.until if spell.over else read_until)

    spell, axis = best = max(parts, key=done)
    seconds = (spell.until if spell.over else read_until) - spell.begun
    course = Course(sayings=_by_attempt(parts, said), parts=parts)
    return Unended(course, done(best), max(0.0, seconds), axis.speed)


def _heard(spell: Spell, axis: _Axis, offset: float, said: Sequence[Said]) -> list[tuple[float, Said]]:
    """What a job said during an attempt that begins at a position."""
    until = spell.until if spell.over else inf
    return [(offset + axis.at(each.at), each) for each in said if spell.begun <= each.at <= until]
