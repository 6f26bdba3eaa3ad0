"""Read series for one question, from the frames in memory and from the file, while others go on writing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from corral.model.metrics.job_figures import family_of
from corral.model.series import SeriesQuestion, SeriesView
from corral.monitor.series.database import Database, StoredSeries
from corral.monitor.series.frames import Frames
from corral.monitor.series.grid import COARSE, FINE, Grid
from corral.monitor.series.packing import BrokenChunk, unpack
from corral.monitor.series.reading import FineValues, Summed, coarse_points, columns

NODE: Final = "node"
"""The label with the machine that measured a series."""
_MOST_NAMES: Final = 20_000
"""Names that are looked through for one question."""


class SeriesReader:
    """One question; it takes the frames that it needs when it is made, under the lock of the store."""

    def __init__(self, question: SeriesQuestion, frames: Frames, unnamed: Sequence[StoredSeries]) -> None:
        """`unnamed` are the series whose names are not in the file yet."""
        self._question = question
        self._begin = question.begin // question.step * question.step
        self._end = self._begin + question.steps * question.step
        self._frames = list(frames.between(FINE.step(self._begin), FINE.step(self._end)))
        self._fine_from = frames.newest - FINE.kept_steps
        self._unnamed = unnamed

    def read(self, path: Path, most: int) -> tuple[list[SeriesView], int]:
        """At most `most` series, and how many further ones there are. Raises sqlite3.Error."""
        database = Database(path, read_only=True)
        try:
            named = self._named(database)
            found = [view for each in named[:most] if (view := self._view(database, each)) is not None]
            return found, max(0, len(named) - most)
        finally:
            database.close()

    def _named(self, database: Database) -> list[StoredSeries]:
        """The series that fit; those that ended before the question's time are left out."""
        names = {each.number: each for each in self._unnamed}
        first_hour = int(self._begin) // FINE.chunk_seconds
        for family in self._question.families or ("",):
            for each in database.names(family, self._question.job, _MOST_NAMES):
                names.setdefault(each.number, each)
        in_memory = {number for _, frame in self._frames for number in frame.numbers}
        return [
            each
            for each in sorted(names.values(), key=lambda each: (each.family, each.labels))
            if (each.last >= first_hour or each.number in in_memory) and self._fits(each)
        ]

    def _fits(self, series: StoredSeries) -> bool:
        question = self._question
        if question.families and series.family not in question.families:
            return False
        if question.job and series.job != question.job:
            return False
        labels = _labels(series)
        return labels is not None and all(labels.get(name) == value for name, value in question.labels.items())

    def _view(self, database: Database, series: StoredSeries) -> SeriesView | None:
        values = self._values(database, series.number)
        old = FINE.step(self._begin) < self._fine_from
        sums = self._coarse(database, series.number) if old else iter(())
        mean, low, high = columns(values, sums, int(self._begin), self._question.step, self._question.steps)
        labels = _labels(series)
        if labels is None or all(each is None for each in mean):
            return None
        return SeriesView(series.family, labels, mean, low, high)

    def _values(self, database: Database, number: int) -> FineValues:
        """The single values by step; those in memory win."""
        last = FINE.step(self._end)
        first = min(max(FINE.step(self._begin), self._fine_from // FINE.steps * FINE.steps), last)
        found = FineValues(first, [None] * (last - first))
        for chunk in _chunks(FINE, first * FINE.seconds, self._end):
            data = database.chunk("fine", chunk, number)
            if data is not None:
                with contextlib.suppress(BrokenChunk):
                    packed = unpack(data, FINE.steps)
                    found.put(chunk * FINE.steps, packed.steps, packed.columns[0])
        for step, frame in self._frames:
            if (value := frame.value(number)) is not None:
                found.put(step, (0,), (value,))
        return found

    def _coarse(self, database: Database, number: int) -> Iterator[tuple[int, Summed]]:
        for chunk in _chunks(COARSE, self._begin, self._end):
            data = database.chunk("coarse", chunk, number)
            if data is not None:
                try:
                    packed = unpack(data, COARSE.steps)
                except BrokenChunk:
                    continue
                yield from ((chunk * COARSE.steps + step, value) for step, value in coarse_points(packed))


def _chunks(grid: Grid, begin: float, end: float) -> range:
    return range(int(begin // grid.chunk_seconds), int(-(-end // grid.chunk_seconds)))


def _labels(series: StoredSeries) -> dict[str, str] | None:
    """The labels by name; None for a family that is no longer known."""
    family, values = family_of(series.family), json.loads(series.labels)
    names = () if family is None else (*family.labels, NODE)
    if not len(names) - 1 <= len(values) <= len(names):
        return None
    return dict(zip(names, map(str, values), strict=False))
