"""Check running attempts periodically: their folders, logs and disk use, and memory without control groups."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from corral.engines.local import disk, memory
from corral.engines.local.attempt_folder import EndRecord
from corral.engines.local.live_attempt import FOLDER_FULL, FOLDER_GONE, MEMORY_OVER, LiveAttempt
from corral.kernel.ids import AttemptId
from corral.model.exits import EXTERNALLY_DELETED, OUT_OF_MEMORY, USER_ERROR
from corral.storage.log_files import LogStore

FOLDER_SECONDS = 2.0
LOG_SECONDS = 10.0
_log = logging.getLogger(__name__)


class AttemptMonitor:
    """Timers that run while an attempt needs them. A failed check is logged, and the timer goes on."""

    def __init__(
        self,
        running: Callable[[], list[LiveAttempt]],
        kill: Callable[[LiveAttempt, EndRecord], None],
        logs: LogStore,
        log_limit: int,
        folder_limit: int,
    ) -> None:
        """`kill` ends a running attempt for a reason; the last `log_limit` bytes of a stream's log are kept (0: all).

        A working folder may hold `folder_limit` bytes (0: no limit).
        """
        self.memory_is_limited = False
        """Whether control groups limit memory."""
        self._running = running
        self._kill = kill
        self._logs = logs
        self._log_limit = log_limit
        self._folder_limit = folder_limit
        self._measuring: asyncio.Task[None] | None = None
        self._walks: dict[str, disk.DiskUsageScan] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def begin(self, attempts: Collection[LiveAttempt]) -> None:
        """Start the timers that these running attempts need."""
        if attempts:
            self._soon("folders", FOLDER_SECONDS, self._look_at_folders)
        if attempts and self._log_limit:
            self._soon("logs", LOG_SECONDS, self._look_at_logs)
        if self._folder_limit and (self._measuring is None or self._measuring.done()) and any(map(_has_work, attempts)):
            self._soon("disk", disk.SECONDS, self._look_at_disk)
        if any(map(self._is_watched, attempts)):
            self._soon("memory", memory.SECONDS, self._look_at_memory)

    def end(self) -> None:
        """Stop all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._measuring is not None:
            self._measuring.cancel()

    def _soon(self, what: str, seconds: float, look: Callable[[], None]) -> None:
        if what not in self._timers:
            self._timers[what] = asyncio.get_running_loop().call_later(seconds, self._look, what, look)

    def _look(self, what: str, look: Callable[[], None]) -> None:
        del self._timers[what]
        try:
            look()
        except OSError as error:
            _log.warning("The %s of the tasks could not be looked at and are again soon: %s", what, error)
        finally:
            self.begin(self._running())

    def _look_at_folders(self) -> None:
        """End each attempt whose folder or launch record was removed, since the next server would not find it."""
        for live in self._running():
            if live.folder.removed():
                self._kill(live, EndRecord(EXTERNALLY_DELETED, FOLDER_GONE))

    def _is_watched(self, live: LiveAttempt) -> bool:
        return bool(live.record.memory_bytes) and not self.memory_is_limited and not live.record.container

    def _look_at_memory(self) -> None:
        watched = {live.attempt: live for live in self._running() if self._is_watched(live)}
        for attempt in memory.over_limit({attempt: live.record.memory_bytes for attempt, live in watched.items()}):
            self._kill(watched[AttemptId(attempt)], EndRecord(OUT_OF_MEMORY, MEMORY_OVER, 9))

    def _look_at_disk(self) -> None:
        self._measuring = asyncio.create_task(self._measure())

    async def _measure(self) -> None:
        """End each attempt whose working folder holds too much. Files are counted in a thread."""
        working = {live.attempt: live for live in self._running() if _has_work(live)}
        folders = {str(attempt): f"{live.folder.path}/work" for attempt, live in working.items()}
        for attempt in await asyncio.to_thread(disk.over_limit, folders, self._folder_limit, self._walks):
            live = working[AttemptId(attempt)]
            if live in self._running():
                self._kill(live, EndRecord(USER_ERROR, FOLDER_FULL.format(self._folder_limit / 2**30), 9))
        self._measuring = None
        self.begin(self._running())

    def _look_at_logs(self) -> None:
        for live in self._running():
            try:
                self._logs.drop_head(live.attempt, self._log_limit)
            except OSError as error:
                _log.warning("The log of %s could not be shortened: %s", live.attempt, error)


def _has_work(live: LiveAttempt) -> bool:
    """Return whether it was given a working folder."""
    return live.record.directory == f"{live.folder.path}/work"
