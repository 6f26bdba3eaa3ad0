"""Look at running attempts again and again: at their folders, their memory without control groups, their logs' length."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from corral.engines.local import memory
from corral.engines.local.folders import EndRecord
from corral.engines.local.live import FOLDER_GONE, MEMORY_OVER, OUT_OF_MEMORY, POD_EXTERNAL_DELETED, LiveAttempt
from corral.kernel.ids import AttemptId
from corral.storage.logs import LogStore

FOLDER_SECONDS = 2.0
LOG_SECONDS = 10.0
_log = logging.getLogger(__name__)


class Watch:
    """Timers that go on for as long as there is an attempt that they are for; a look that fails is not the last."""

    def __init__(
        self,
        running: Callable[[], list[LiveAttempt]],
        kill: Callable[[LiveAttempt, EndRecord], None],
        logs: LogStore,
        log_limit: int,
    ) -> None:
        """`kill` ends a running attempt for a reason; of a stream's log the last `log_limit` bytes are kept (0: all)."""
        self.memory_is_limited = False
        """Whether control groups limit it."""
        self._running = running
        self._kill = kill
        self._logs = logs
        self._log_limit = log_limit
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def begin(self, attempts: Collection[LiveAttempt]) -> None:
        """Look from now on after what these running attempts need to be looked at."""
        if attempts:
            self._soon("folders", FOLDER_SECONDS, self._look_at_folders)
        if attempts and self._log_limit:
            self._soon("logs", LOG_SECONDS, self._look_at_logs)
        if any(map(self._is_watched, attempts)):
            self._soon("memory", memory.SECONDS, self._look_at_memory)

    def end(self) -> None:
        """Look no more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

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
        """End each attempt whose folder, or the record in it, was removed: the next server could not know it."""
        for live in self._running():
            if live.folder.removed():
                self._kill(live, EndRecord(POD_EXTERNAL_DELETED, FOLDER_GONE))

    def _is_watched(self, live: LiveAttempt) -> bool:
        return bool(live.record.memory_bytes) and not self.memory_is_limited and not live.record.container

    def _look_at_memory(self) -> None:
        watched = {live.attempt: live for live in self._running() if self._is_watched(live)}
        for attempt in memory.over_limit({attempt: live.record.memory_bytes for attempt, live in watched.items()}):
            self._kill(watched[AttemptId(attempt)], EndRecord(OUT_OF_MEMORY, MEMORY_OVER, 9))

    def _look_at_logs(self) -> None:
        for live in self._running():
            try:
                self._logs.drop_head(live.attempt, self._log_limit)
            except OSError as error:
                _log.warning("The log of %s could not be shortened: %s", live.attempt, error)
