"""Copy the logs of this machine to the archive while they grow, so that they outlive the machine.

Every failure is retried, so while the blob store is away the archive only lags behind. Only the leader copies. An ended
log that is archived stays here for an hour, for its readers.
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
from corral.storage.log_archive import Archived, LogArchive, Segment
from corral.storage.log_files import EndedLog, LogFile, LogStore

_log = logging.getLogger(__name__)
EVERY_SECONDS: Final = 30.0
"""Seconds between two copies of new bytes."""
_MOST: Final = 8 << 20
"""Bytes of one segment at most."""
_AT_ONCE: Final = 4
"""Logs that are copied at once; more would take processor time from the scheduler."""
_KEPT_SECONDS: Final = 3600.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_UNKNOWN: Final = Archived()


class Growing(NamedTuple):
    """A log that grows here: its size in bytes to copy, and its follower's mark at that size."""

    attempt: AttemptId
    stream: str
    size: int
    mark: str


class LogArchiver:
    """Copies local logs to the archive, restores them from it, and removes them in both places."""

    def __init__(
        self,
        store: LogStore,
        archive: LogArchive,
        *,
        leads: Callable[[], bool] = lambda: True,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`leads` returns whether this server may still act; `wall` the seconds since 1970."""
        self.archive = archive
        self.growing: Callable[[], Iterable[Growing]] = lambda: ()
        """Returns the logs to copy while they grow."""
        self._store, self._leads, self._wall = store, leads, wall
        self._there: dict[tuple[AttemptId, str], Archived] = {}
        """The archived part of local logs, as far as known."""
        self._locks: weakref.WeakValueDictionary[tuple[AttemptId, str], asyncio.Lock] = weakref.WeakValueDictionary()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._removals: dict[str, int] = {}
        """Jobs whose archived logs are to be removed, with the passes left: a copy may have been in progress."""

    async def run(self) -> None:
        """Copy new bytes every 30 seconds until cancelled."""
        while True:
            await self.sweep()
            await asyncio.sleep(EVERY_SECONDS)

    async def sweep(self) -> None:
        """Copy all new bytes now, and delete local logs that ended an hour ago and are archived.

        Failures wait for the next sweep.
        """
        growing = list(self.growing())
        ended = await asyncio.to_thread(self._store.ended)
        await asyncio.gather(*(self._try(self._grown(each)) for each in growing), *map(self._tend, ended))
        for job, times in list(self._removals.items()):
            if await self._try(self.archive.remove(job)):
                self._removals[job] = times - 1
                if times <= 1:
                    del self._removals[job]

    async def settle(self, attempt: AttemptId, seconds: float) -> bool:
        """Archive an ended attempt's whole output now, within `seconds`; returns whether it is archived."""
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
        """Append the archived bytes beyond the local file to it; returns the latest mark and its offset.

        Raises Unavailable; the local file then has a part of them, and the same call continues.
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
            del self._there[attempt, stream]  # an earlier leader still wrote: look again
            raise

    def begun(self, attempt: AttemptId, stream: str = "all") -> None:
        """Note that an attempt has just started here, so that the archive has nothing of it."""
        self._there.setdefault((attempt, stream), _UNKNOWN)

    async def known(self, attempt: AttemptId, stream: str = "all") -> Archived:
        """The archived part of a log.

        Raises Unavailable.
        """
        if (attempt, stream) not in self._there:
            self._there[attempt, stream] = await self.archive.look(attempt, stream)
        return self._there[attempt, stream]

    def forget(self, job: str) -> None:
        """Remove the logs of a deleted job, here now and in the archive soon."""
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
        """Copy an ended log, and delete it here an hour after its end."""
        if await self._try(self._finished(log)) and log.at < self._wall() - _KEPT_SECONDS:
            self._store.drop(log.attempt, log.stream)
            self._there.pop((log.attempt, log.stream), None)

    async def _copy(self, attempt: AttemptId, stream: str, to: int, mark: str, *, last: bool) -> None:
        """Archive the bytes up to `to`; `mark` belongs to that offset."""
        there = self._there[attempt, stream]
        source = LogFile(self._store.path(attempt, stream), str(self._store.root))
        try:
            while there.size < to or (last and not there.complete):
                begin, data = await source.read(there.next_begin() if there.size < to else to, _MOST)
                data = data[: max(0, to - begin)]
                if not data and there.size < to:
                    to = there.size  # a dropped head reaches up to here, or the file is shorter than reported
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
    """Write at an offset in a thread; returns only when the thread has ended, also when cancelled.

    Otherwise the thread would write into any file that reuses the descriptor.
    """
    work = asyncio.ensure_future(asyncio.to_thread(_write_all, handle, data, at))
    try:
        await asyncio.shield(work)
    finally:
        while not work.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([work])


def _write_all(handle: int, data: bytes, at: int) -> None:
    """Write all bytes; a nearly full disk takes a part and fails only at the next write."""
    while data:
        count = os.pwrite(handle, data, at)
        data, at = data[count:], at + count
