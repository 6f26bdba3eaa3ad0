"""The store of series: takes the values of metrics, keeps them in one file, and answers questions about them.

New values are kept in memory by step, and stored together as frames. When an hour is over, each series of it is packed
into a chunk, and when a day is over, its chunks are summed up. So a broken file, a full disk or a kill costs pictures,
and never what the scheduler does.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from corral.model.metrics.families import FAMILIES, Kind
from corral.model.metrics.job_figures import family_of, job_of
from corral.model.metrics.samples import Samples
from corral.model.series import MOST_SERIES, SeriesQuestion, SeriesView
from corral.monitor.series.database import BrokenFile, Database, FileError, NotNow, StoredSeries, is_full
from corral.monitor.series.frames import Frames
from corral.monitor.series.grid import FINE
from corral.monitor.series.series_reader import SeriesReader
from corral.monitor.series.upkeep import Upkeep

log = structlog.get_logger()

MOST_BYTES: Final = 400_000_000
"""Bytes of the file; beyond them the oldest values are removed early."""
MOST_LIVE: Final = 20_000
"""Series that had values within the last hours; further ones are not kept."""
_SHARE_OF_OTHERS: Final = 0.8
"""The part of the live series beyond which new ones of other machines are not kept."""
_LARGEST: Final = 1e300
_SET_BACK: Final = 4
"""Steps by which the clock must be behind the newest value to have been set back."""
OLDEST_SECONDS: Final = 600
"""Seconds before the newest value for which values are still taken: TensorBoard's writers write every two minutes."""
_MOST_UNSTORED: Final = 2 * FINE.steps
"""Steps that are held in memory while the file takes nothing."""
_LONGEST_LABELS: Final = 1000
_NOT_KEPT: Final = frozenset(name for name, family in FAMILIES.items() if not family.kept)

Name = tuple[str, tuple[str, ...]]
"""A family, and the values of its labels."""


class _Known(NamedTuple):
    """A series that has had values lately."""

    number: int
    hour: int
    """The hour since 1970 of its latest value."""


class SeriesStore:
    """Keeps series in one file. Its methods may be called from any thread, and raise nothing for what is wrong with it."""

    def __init__(
        self,
        path: Path,
        *,
        most_bytes: int = MOST_BYTES,
        most_live: int = MOST_LIVE,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """The file is opened with the first value; `steady` is a clock in seconds that is never set."""
        self.path = path
        self._most_bytes, self._most_live, self._steady = most_bytes, most_live, steady
        self._lock = threading.RLock()
        self._database: Database | None = None
        self._frames = Frames()
        self._known: dict[Name, _Known] = {}
        self._unnamed: dict[int, StoredSeries] = {}
        """Series whose names are not stored yet, by number."""
        self._unstored = -1
        """The oldest step whose frame is not stored yet; -1 is none."""
        self._newest_number = 0
        self._upkeep = Upkeep(self._frames, steady, most_bytes)
        self._troubles: set[str] = set()

    # values

    def add(self, samples: Samples, at: float, node: str = "", *, others: bool = False) -> None:
        """Take values at a time, in seconds since 1970; values of an unknown family or beyond 1e300 are left out.

        With `node`, the machine that measured them, their series get the label `node`. `others` are values of other
        machines, which may not take the room of the server's own.
        """
        with self._lock:
            step = FINE.step(at)
            if self._open() is None:
                return
            if step < self._frames.newest - _SET_BACK:
                self._clock_set_back(step)
            most = int(self._most_live * _SHARE_OF_OTHERS) if others else self._most_live
            self._frames.add(step, self._numbered(samples, step, most, node))
            first = max(step, self._frames.newest - 1)
            self._unstored = first if self._unstored < 0 else min(self._unstored, first)

    def add_past(self, samples: Samples, at: float) -> None:
        """Take values of jobs of a time that may be past, at most `OLDEST_SECONDS` before the newest; older ones are lost.

        They may not take the room of the server's own.
        """
        with self._lock:
            step = FINE.step(at)
            if self._open() is None:
                return
            values = self._numbered(samples, step, int(self._most_live * _SHARE_OF_OTHERS))
            if values and step >= self._frames.newest - OLDEST_SECONDS // FINE.seconds:
                self._frames.add_past(step, values)
                self._unstored = step if self._unstored < 0 else min(self._unstored, step)

    def flush(self) -> None:
        """Store what has come since the last call."""
        with self._lock:
            if self._unstored >= 0:
                self._guarded(self._store_frames)

    def maintain(self) -> bool:
        """Do a small part of what is due: pack, sum up, remove; whether there is more to do at once."""
        with self._lock:
            if self._open() is None or self._unstored >= 0:
                return False
            more = self._guarded(self._upkeep.go_on)
            if not more:
                oldest = self._frames.newest // FINE.steps - 1
                for name in [name for name, known in self._known.items() if known.hour < oldest]:
                    del self._known[name]
            return bool(more)

    def close(self) -> None:
        """Store what is left, and close the file."""
        with self._lock:
            self.flush()
            if self._database is not None:
                self._database.close()
                self._database = None

    # questions

    def read(self, question: SeriesQuestion, most: int = MOST_SERIES) -> tuple[list[SeriesView], int]:
        """At most `most` series that fit, and how many further ones there are; none while the file cannot be read."""
        with self._lock:
            if self._open() is None:
                return [], 0
            reader = SeriesReader(question, self._frames, list(self._unnamed.values()))
        try:
            return reader.read(self.path, most)
        except FileError as error:
            self._tell("series cannot be read", error)
            return [], 0

    # inside

    def _open(self) -> Database | None:
        if self._database is None:
            try:
                self._database = Database(self.path, most_bytes=self._most_bytes + self._most_bytes // 8)
                self._newest_number = max(self._newest_number, self._database.newest_number())
                for step, frame in self._database.frames():
                    self._frames.restore(step, frame)
            except NotNow as error:
                self._tell("series are not kept", error)
            except BrokenFile as error:
                self._set_aside(error)
            self._upkeep.database = self._database
        return self._database

    def _numbered(self, samples: Samples, step: int, most: int, node: str = "") -> dict[int, float]:
        """The values that are kept, by the numbers of their series."""
        values: dict[int, float] = {}
        for name, value in _values(samples):
            if node:
                name = name[0], (*name[1], node)
            if -_LARGEST < value < _LARGEST and (number := self._number(name, step, most)) is not None:
                values[number] = value
        return values

    def _number(self, name: Name, step: int, most: int) -> int | None:
        """The number of a series, a new one if need be; None if there are too many. Odd numbers are counters."""
        known, hour = self._known.get(name), step // FINE.steps
        if known is None:
            found = self._new_number(name, hour, most)
            if found is None:
                return None
            known = self._known[name] = _Known(found, hour)
        elif known.hour != hour:
            self._known[name] = _Known(known.number, hour)
        return known.number

    def _new_number(self, name: Name, hour: int, most: int) -> int | None:
        family = family_of(name[0])
        if family is None or len(name[1]) - len(family.labels) not in (0, 1):
            return None
        if len(self._known) >= most:
            self._tell("series are left out", f"more than {most} are alive")
            return None
        labels = json.dumps(name[1], separators=(",", ":"))
        if len(labels) > _LONGEST_LABELS or self._database is None:
            return None
        try:
            number = self._database.number(name[0], labels)
        except FileError:
            number = None
        if number is None:
            number = (self._newest_number | 1) + 1 + (family.kind is not Kind.GAUGE)
            self._newest_number = number
            self._unnamed[number] = StoredSeries(number, name[0], labels, job_of(family, name[1]), hour)
        return number

    def _store_frames(self, database: Database) -> None:
        begin, newest = self._unstored, self._frames.newest
        with database:
            database.add_names(self._unnamed.values())
            before = None
            for step, frame in self._frames.between(begin, newest + 1):
                if step % FINE.steps == 0:
                    before = None
                database.put_frame(step, frame, before)
                before = frame
        self._unnamed.clear()
        self._unstored = -1
        self._troubles.clear()

    def _guarded(self, work: Callable[[Database], bool | None]) -> bool | None:
        """Do what needs the file; a broken one is set aside, and other trouble is told once."""
        database = self._open()
        if database is None:
            return None
        try:
            return work(database)
        except NotNow as error:
            self._tell("series are not kept", error)
            self._frames.drop(0, self._frames.newest - _MOST_UNSTORED)
            if is_full(error):
                self._make_room(database)
        except BrokenFile as error:
            self._set_aside(error)
        return None

    def _make_room(self, database: Database) -> None:
        """Remove the oldest values, because the file has its full size or the disk is full."""
        with contextlib.suppress(FileError):
            self._upkeep.remove_oldest(database, self._frames.newest // FINE.steps)

    def _set_aside(self, error: Exception) -> None:
        """Begin a new file; what is in memory is stored in it."""
        if self._database is not None:
            self._database.close()
            self._database = None
        aside = self.path.with_name(f"{self.path.name}.broken")
        try:
            self.path.replace(aside)
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            self._database = Database(self.path, most_bytes=self._most_bytes + self._most_bytes // 8)
        except (OSError, FileError) as again:
            self._tell("series are not kept", again)
            return
        finally:
            self._upkeep.begin_anew()
            self._upkeep.database = self._database
        log.error("the file of series was broken and is set aside", file=str(aside), error=str(error))
        names = {known.number: (name, known) for name, known in self._known.items()}
        for number, (name, known) in names.items():
            family = family_of(name[0])
            job = "" if family is None else job_of(family, name[1])
            labels = json.dumps(name[1], separators=(",", ":"))
            self._unnamed[number] = StoredSeries(number, name[0], labels, job, known.hour)
        self._unstored = min(self._frames.steps(), default=-1)

    def _clock_set_back(self, step: int) -> None:
        log.warning("the clock was set back: series after now are removed", seconds=(self._frames.newest - step) * 15)
        self._frames.drop(step, self._frames.newest + 1)
        self._unstored = min(self._unstored, step)
        self._guarded(lambda database: self._upkeep.set_back(database, step))

    def _tell(self, event: str, error: object) -> None:
        """Log what is wrong, once until the file takes values again."""
        if event not in self._troubles:
            self._troubles.add(event)
            log.warning(event, file=str(self.path), error=str(error))


def _values(samples: Samples) -> Iterator[tuple[Name, float]]:
    """The values that are kept; of a histogram how many values it has, and their sum."""
    for family, labels, value in samples.values:
        if family not in _NOT_KEPT:
            yield (family, labels), value
    for each in samples.distributions:
        yield (f"{each.family}_count", each.labels), float(sum(each.counts))
        yield (f"{each.family}_sum", each.labels), each.sum if math.isfinite(each.sum) else 0.0
