"""What is done with stored series as time goes by: hours are packed, days are summed up, old values are removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import structlog

from corral.monitor.series.database import Database
from corral.monitor.series.frames import OPEN_STEPS, Frames
from corral.monitor.series.grid import COARSE, COUNTER_BITS, FINE, HOURS
from corral.monitor.series.packing import EXACT, BrokenChunk, Chunk, pack, unpack
from corral.monitor.series.reading import summed

log = structlog.get_logger()

_AT_ONCE: Final = 40
"""Series that are packed in one call, which takes some 20 ms."""
_SUMMED: Final = "summed"
"""The mark of the day before which days are summed up."""
_STEADY_SECONDS: Final = 3600.0
"""Seconds after a start or a jump of the clock in which nothing is removed by age."""
_ALIVE_HOURS: Final = 2
"""Hours in which a series that has values now was stored at the latest."""
_JUMP_STEPS: Final = 40
"""Steps by which the clock must be ahead of a steady one to have jumped."""


class _Plan(NamedTuple):
    """A chunk that is being packed or summed up."""

    coarse: bool
    chunk: int
    numbers: list[int]


class Upkeep:
    """Does what is due in small parts; each part is one transaction, and may be repeated."""

    def __init__(self, frames: Frames, steady: Callable[[], float], most_bytes: int) -> None:
        """`steady` is a clock in seconds that is never set."""
        self.database: Database | None = None
        self._frames, self._steady, self._most_bytes = frames, steady, most_bytes
        self._plan: _Plan | None = None
        self._done = 0
        self._removed_hour = -1
        self._steady_since = steady()
        self._seen = 0, steady()
        """The newest step and the steady time at the last look."""

    def begin_anew(self) -> None:
        """Forget what is half done: the file is another one."""
        self._plan = None
        self._removed_hour = -1

    def go_on(self, database: Database) -> bool:
        """Do the next part; whether there is more to do at once."""
        self._watch_clock()
        if self._plan is None:
            self._plan, self._done = self._next(database), 0
        if self._plan is None:
            return self._remove(database)
        numbers = self._plan.numbers[self._done : self._done + _AT_ONCE]
        with database:
            (self._sum_up if self._plan.coarse else self._pack)(database, self._plan.chunk, numbers)
            over = self._done + len(numbers) >= len(self._plan.numbers)
            if over:
                self._finish(database, self._plan)
        self._done += len(numbers)
        if over:
            if not self._plan.coarse:
                self._frames.drop(self._plan.chunk * FINE.steps, (self._plan.chunk + 1) * FINE.steps)
            self._plan = None
        return True

    def set_back(self, database: Database, step: int) -> None:
        """Remove what was stored of the time after a step."""
        self.begin_anew()
        self._steady_since, self._seen = self._steady(), (step, self._steady())
        hour, day = step // FINE.steps, step // (FINE.steps * HOURS)
        with database:
            database.drop_frames(step, 1 << 40)
            database.drop_chunks("fine", hour + 1, 1 << 40)
            database.drop_chunks("coarse", day + 1, 1 << 40)
            database.set_mark(_SUMMED, min(database.mark(_SUMMED), day))

    def _watch_clock(self) -> None:
        newest, now = self._frames.newest, self._steady()
        seen, at = self._seen
        if seen and newest - seen > (now - at) / FINE.seconds + _JUMP_STEPS:
            self._steady_since = now
        self._seen = newest, now

    def _next(self, database: Database) -> _Plan | None:
        over = (self._frames.newest - OPEN_STEPS) // FINE.steps
        hours = sorted(hour for hour in self._frames.hours() if hour < over)
        if hours:
            begin = hours[0] * FINE.steps
            numbers = {each for _, frame in self._frames.between(begin, begin + FINE.steps) for each in frame.numbers}
            return _Plan(False, hours[0], sorted(numbers))
        summed_until = database.mark(_SUMMED)
        days = sorted({chunk // HOURS for chunk in database.chunks("fine") if chunk // HOURS >= summed_until})
        if days and days[0] < over // HOURS:
            return _Plan(True, days[0], sorted(database.numbers_in("fine", days[0] * HOURS, (days[0] + 1) * HOURS)))
        return None

    def _pack(self, database: Database, hour: int, numbers: list[int]) -> None:
        begin = hour * FINE.steps
        frames = [(step - begin, frame) for step, frame in self._frames.between(begin, begin + FINE.steps)]
        made = []
        for number in numbers:
            points = dict(zip(*_steps_and_values(database.chunk("fine", hour, number)), strict=True))
            for step, frame in frames:
                if (value := frame.value(number)) is not None:
                    points[step] = value
            steps = sorted(points)
            chunk = Chunk(steps, ([points[step] for step in steps],))
            made.append((hour, number, pack(chunk, EXACT if number & 1 else FINE.bits)))
        database.put_chunks("fine", made)
        database.seen(hour, numbers)

    def _sum_up(self, database: Database, day: int, numbers: list[int]) -> None:
        made = []
        for number in numbers:
            points: dict[int, float] = {}
            for hour in range(day * HOURS, (day + 1) * HOURS):
                steps, values = _steps_and_values(database.chunk("fine", hour, number))
                points.update(zip((hour * FINE.steps + step for step in steps), values, strict=True))
            triples = _triples(database.chunk("coarse", day, number)) | summed(points, day * COARSE.steps)
            if triples:
                made.append((day, number, _packed(triples, counter=bool(number & 1))))
        database.put_chunks("coarse", made)

    def _finish(self, database: Database, plan: _Plan) -> None:
        if plan.coarse:
            database.set_mark(_SUMMED, plan.chunk + 1)
        else:
            database.drop_frames(plan.chunk * FINE.steps, (plan.chunk + 1) * FINE.steps)

    def _remove(self, database: Database) -> bool:
        """Remove what is too old, once an hour, and the oldest of what is too much; whether there is more to remove."""
        newest = self._frames.newest
        hour = newest // FINE.steps
        if hour == self._removed_hour:
            return False
        if self._steady() - self._steady_since >= _STEADY_SECONDS:
            coarse_newest = newest * FINE.seconds // COARSE.seconds
            oldest_day = (coarse_newest - COARSE.kept_steps) // COARSE.steps
            with database:
                oldest_fine = min((newest - FINE.kept_steps) // FINE.steps, database.mark(_SUMMED) * HOURS)
                database.drop_chunks("fine", 0, oldest_fine)
                database.drop_chunks("coarse", 0, oldest_day)
                database.forget_names(min(oldest_day * HOURS, hour - _ALIVE_HOURS))
        if database.used_bytes() > self._most_bytes and self.remove_oldest(database, hour):
            return True
        self._removed_hour = hour
        return False

    def remove_oldest(self, database: Database, hour: int) -> bool:
        """Remove the oldest day, or where there is none the oldest hour before `hour`; whether there was one."""
        days = database.chunks("coarse")
        hours = [each for each in database.chunks("fine") if each < hour]
        with database:
            if days:
                database.drop_chunks("coarse", 0, days[0] + 1)
                database.forget_names(min((days[0] + 1) * HOURS, hour - _ALIVE_HOURS))
                log.warning("series have reached their size: the oldest day is removed", bytes=self._most_bytes)
            elif hours:
                database.drop_chunks("fine", 0, hours[0] + 1)
                database.forget_names(min(hours[0] + 1, hour - _ALIVE_HOURS))
                log.warning("series have reached their size: the oldest hour is removed", bytes=self._most_bytes)
        return bool(days or hours)


def _steps_and_values(data: bytes | None) -> tuple[list[int], list[float]]:
    """What a stored fine chunk has; nothing of one that is missing or broken."""
    if data is None:
        return [], []
    try:
        chunk = unpack(data, FINE.steps)
    except BrokenChunk:
        return [], []
    return list(chunk.steps), list(chunk.columns[0])


def _triples(data: bytes | None) -> dict[int, tuple[float, float, float]]:
    if data is None:
        return {}
    try:
        chunk = unpack(data, COARSE.steps)
    except BrokenChunk:
        return {}
    low, high = chunk.columns[-2:] if len(chunk.columns) > 1 else chunk.columns * 2
    return dict(zip(chunk.steps, zip(chunk.columns[0], low, high, strict=True), strict=True))


def _packed(triples: dict[int, tuple[float, float, float]], *, counter: bool) -> bytes:
    steps = sorted(triples)
    means, lows, highs = zip(*(triples[step] for step in steps), strict=True)
    return (
        pack(Chunk(steps, (lows,)), COUNTER_BITS) if counter else pack(Chunk(steps, (means, lows, highs)), COARSE.bits)
    )
