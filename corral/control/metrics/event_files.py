"""Follow the event files that tasks of this machine write for TensorBoard, so that their scalars become series."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from corral.engines.base import WorkFolders
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.metrics.job_figures import SCALAR
from corral.model.metrics.samples import Value
from corral.monitor.series.grid import FINE
from corral.monitor.series.store import OLDEST_SECONDS
from corral.runtime.event_folder import Allowance, EventFolder, Point

_log = logging.getLogger(__name__)
EVERY_SECONDS: Final = 15.0
SHARE: Final = 0.02
"""The part of a core that looks may take: the pause after one is longer where it cost more."""
_MOST_BYTES: Final = 4 * 2**20
"""Bytes that are read in one look; records of before `OLDEST_SECONDS` take a tenth of the time."""
_MOST_EVENTS: Final = 10_000
"""Events that are decoded in one look, in some 0.3 s."""
_AHEAD_SECONDS: Final = 60.0
"""Seconds by which the time of a value may be ahead; values of a later time are left out."""
Scalars = Iterable[tuple[float, Value]]


class EventFiles:
    """Looks into the folders of tasks that run here now and then, and once more before they are removed."""

    def __init__(self, folders: WorkFolders, take: Callable[[Scalars], None], now: Callable[[], float]) -> None:
        """`take` gets scalars with their times, in a thread; `now` is the clock of the server."""
        self._folders, self._take, self._now = folders, take, now
        self._known: dict[AttemptId, EventFolder] = {}
        self._lock = asyncio.Lock()
        self._told: set[AttemptId] = set()
        """Attempts of which was logged that something is wrong with their files."""
        self.pause = EVERY_SECONDS
        """Seconds between the last look and the next."""
        folders.last_look = self.last_look

    async def run(self) -> None:
        """Look until cancelled. No failure ends it."""
        while True:
            await asyncio.sleep(self.pause)
            await self.look()

    async def look(self) -> None:
        """Look into the folders of all attempts; those that had to wait for others come first next time."""
        async with self._lock:
            folders = self._folders.all()
            for attempt in self._known.keys() - folders.keys():
                self._forget(attempt)
            for attempt, path in folders.items():
                self._known.setdefault(attempt, EventFolder(path))
            cost = await self._looked(dict(self._known))
            self.pause = max(EVERY_SECONDS, cost / SHARE)

    async def last_look(self, folders: Mapping[AttemptId, str]) -> None:
        """Look into the folders of ended attempts, which are not looked at again."""
        async with self._lock:
            await self._looked({each: self._known.get(each) or EventFolder(path) for each, path in folders.items()})
            for attempt in folders:
                self._forget(attempt)

    def _forget(self, attempt: AttemptId) -> None:
        self._known.pop(attempt, None)
        self._told.discard(attempt)

    async def _looked(self, folders: Mapping[AttemptId, EventFolder]) -> float:
        """Look into these folders; the seconds of processor time that it took."""
        try:
            return await asyncio.to_thread(self._look, folders)
        except Exception:  # what tasks write must never end what watches them
            _log.exception("event files of tasks could not be read; that is tried again")
            return 0.0

    def _look(self, folders: Mapping[AttemptId, EventFolder]) -> float:
        begun, now = time.thread_time(), self._now()
        allowance = Allowance(_MOST_BYTES, _MOST_EVENTS)
        for attempt, folder in folders.items():
            if allowance.over:
                break
            if attempt in self._known:  # those that are not reached in this look are first in the next one
                self._known[attempt] = self._known.pop(attempt)
            points = folder.look(now - OLDEST_SECONDS, allowance)
            if points:
                self._take(_latest(attempt, points, now))
            self._tell(attempt, folder)
        return time.thread_time() - begun

    def _tell(self, attempt: AttemptId, folder: EventFolder) -> None:
        """Log once of an attempt what is wrong with its files."""
        broken = folder.broken()
        if (broken or folder.left_out) and attempt not in self._told:
            self._told.add(attempt)
            what = (
                f"a file is broken: {broken[0]}" if broken else "it has too many curves; the further ones are left out"
            )
            _log.warning("The event files of %s are not read as a whole: %s.", attempt, what)


def _latest(attempt: AttemptId, points: Iterable[Point], now: float) -> list[tuple[float, Value]]:
    """The last value of each curve in each step of the series."""
    key = parse_attempt_id(attempt)
    task = f"{key.role}-{key.index}"
    found: dict[tuple[int, str, str], tuple[float, Value]] = {}
    for run, scalar in points:
        if scalar.at <= now + _AHEAD_SECONDS:
            labels = key.job, task, run, scalar.tag
            found[FINE.step(scalar.at), run, scalar.tag] = (scalar.at, Value(SCALAR, labels, scalar.value))
    return list(found.values())
