"""Why: logs grow on the machine of whoever leads, and must outlive it; so what is new goes to the archive all the time.

What can fail here is tried again for as long as it takes: a blob store that is away costs nothing but the time until the
archive has everything. Only who leads copies. An ended log that the archive has stays here for an hour, for its readers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from corral.kernel.errors import CorralError, NotFound, Unavailable
from corral.kernel.ids import AttemptId
from corral.storage.archive import Archived, LogArchive, Segment
from corral.storage.logs import EndedLog, LogFile, LogStore

_log = logging.getLogger(__name__)
EVERY_SECONDS: Final = 30.0
"""How often what is new is copied."""
_MOST: Final = 8 << 20
"""Bytes of one segment."""
_AT_ONCE: Final = 4
"""Logs that are copied at once; more would take processor time from the scheduler."""
_KEPT_SECONDS: Final = 3600.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_UNKNOWN: Final = Archived()


class Growing(NamedTuple):
    """A log that grows here: how many of its bytes to copy, and the mark that says how far its follower was then."""

    attempt: AttemptId
    stream: str
    size: int
    mark: str


class LogArchiver:
    """Copies the logs of this machine to the archive, brings them back, and removes them in both."""

    def __init__(
        self,
        store: LogStore,
        archive: LogArchive,
        *,
        leads: Callable[[], bool] = lambda: True,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`leads` tells whether this server may still act; `wall` the seconds since 1970."""
        self.archive = archive
        self.growing: Callable[[], Iterable[Growing]] = lambda: ()
        """Tells of the logs that are to be copied while they grow."""
        self._store, self._leads, self._wall = store, leads, wall
        self._there: dict[tuple[AttemptId, str], Archived] = {}
        """What the archive has of the logs that are here, as far as is known."""
        self._locks: weakref.WeakValueDictionary[tuple[AttemptId, str], asyncio.Lock] = weakref.WeakValueDictionary()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._removals: dict[str, int] = {}
        """Jobs whose logs are to be removed, and how many times still: a copy may have been under way."""

    async def run(self) -> None:
        """Copy what is new every 30 seconds until cancelled."""
        while True:
            await self.sweep()
            await asyncio.sleep(EVERY_SECONDS)

    async def sweep(self) -> None:
        """Copy everything that is new now, and drop here what has long been there; what fails waits for the next time."""
        growing = list(self.growing())
        ended = await asyncio.to_thread(self._store.ended)
        await asyncio.gather(*(self._try(self._grown(each)) for each in growing), *map(self._tend, ended))
        for job, times in list(self._removals.items()):
            if await self._try(self.archive.remove(job)):
                self._removals[job] = times - 1
                if times <= 1:
                    del self._removals[job]

    async def settle(self, attempt: AttemptId, seconds: float) -> bool:
        """Have all that an ended attempt printed in the archive, at once and for at most so long; whether it is."""
        pause = _FIRST_PAUSE
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    whole = not self._store.grows(attempt)
                    if whole and all([await self._try(self._finished(each)) for each in self._store.ended_of(attempt)]):
                        return True
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
        return False

    async def restore(self, attempt: AttemptId, stream: str = "all") -> tuple[str, int]:
        """Bring what the archive has beyond the local file into it; the latest mark, and the offset that it is of.

        Raises Unavailable; the local file has then some of it, and the same call goes on.
        """
        async with self._lock(attempt, stream):
            there = await self.known(attempt, stream)
            if not there.segments:
                return there.mark
            self._store.prepare(attempt, split=stream != "all")
            handle = os.open(self._store.path(attempt, stream), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640)
            try:
                at = os.fstat(handle).st_size
                for segment in there.segments:
                    while at < segment.end:
                        at = max(at, segment.begin)
                        end = min(at + _MOST, segment.end)
                        data = await self._read(attempt, stream, segment, at, end)
                        await _write(handle, data, at)
                        at += len(data)
            finally:
                os.close(handle)
            return there.mark

    async def _read(self, attempt: AttemptId, stream: str, segment: Segment, begin: int, end: int) -> bytes:
        try:
            return await self.archive.read(attempt, stream, segment, begin, end)
        except NotFound:
            del self._there[attempt, stream]  # somebody who led before still wrote: look again
            raise

    def begun(self, attempt: AttemptId, stream: str = "all") -> None:
        """An attempt has just been started here: the archive has nothing of it."""
        self._there.setdefault((attempt, stream), _UNKNOWN)

    async def known(self, attempt: AttemptId, stream: str = "all") -> Archived:
        """What the archive has of a log.

        Raises Unavailable.
        """
        if (attempt, stream) not in self._there:
            self._there[attempt, stream] = await self.archive.look(attempt, stream)
        return self._there[attempt, stream]

    def forget(self, job: str) -> None:
        """Remove the logs of a job that is gone, here now and there soon."""
        self._store.remove(job)
        self._removals[job] = 2
        for key in [key for key in self._there if key[0].partition(".")[0] == job]:
            del self._there[key]

    async def _grown(self, log: Growing) -> None:
        async with self._places, self._lock(log.attempt, log.stream):
            if (await self.known(log.attempt, log.stream)).size < log.size:
                await self._copy(log.attempt, log.stream, log.size, log.mark, last=False)

    async def _finished(self, log: EndedLog) -> None:
        async with self._places, self._lock(log.attempt, log.stream):
            if not (await self.known(log.attempt, log.stream)).complete:
                await self._copy(log.attempt, log.stream, log.size, "", last=True)

    async def _tend(self, log: EndedLog) -> None:
        """Copy an ended log; drop it here when it has been there for long enough."""
        if await self._try(self._finished(log)) and log.at < self._wall() - _KEPT_SECONDS:
            self._store.drop(log.attempt, log.stream)
            self._there.pop((log.attempt, log.stream), None)

    async def _copy(self, attempt: AttemptId, stream: str, to: int, mark: str, *, last: bool) -> None:
        """Write the bytes up to `to`; `mark` is of that offset."""
        there = self._there[attempt, stream]
        source = LogFile(self._store.path(attempt, stream), str(self._store.root))
        try:
            while there.size < to or (last and not there.complete):
                begin, data = await source.read(there.next_begin() if there.size < to else to, _MOST)
                data = data[: max(0, to - begin)]
                if not data and there.size < to:
                    to = there.size  # a head that was dropped up to here, or a file that is shorter than was said
                    begin = to
                    if not last:
                        return
                end = begin + len(data)
                if attempt.partition(".")[0] in self._removals:
                    return
                if not self._leads():
                    raise Unavailable("lease-over", "This control does not know whether it still leads.")
                there = await self.archive.add(
                    attempt, stream, there, begin, data, mark=mark if end == to else "", last=last and end >= to
                )
                if (attempt, stream) in self._there:
                    self._there[attempt, stream] = there
        finally:
            await source.close()

    async def _try(self, work: Awaitable[None]) -> bool:
        try:
            await work
        except CorralError as error:
            _log.warning("a log is not in the archive yet: %s", error.message)
            return False
        except OSError as error:
            _log.warning("a log could not be read for the archive: %s", error.strerror)
            return False
        return True

    def _lock(self, attempt: AttemptId, stream: str) -> asyncio.Lock:
        lock = self._locks.get((attempt, stream))
        if lock is None:
            lock = self._locks[attempt, stream] = asyncio.Lock()
        return lock


async def _write(handle: int, data: bytes, at: int) -> None:
    """Write at an offset, by a thread that has ended when this ends, also when it is cancelled.

    A thread that went on would write into whatever file has the number next.
    """
    work = asyncio.ensure_future(asyncio.to_thread(_write_all, handle, data, at))
    try:
        await asyncio.shield(work)
    finally:
        while not work.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([work])


def _write_all(handle: int, data: bytes, at: int) -> None:
    """A disk that is nearly full takes a part, and says at the next try that it is full."""
    while data:
        count = os.pwrite(handle, data, at)
        data, at = data[count:], at + count
