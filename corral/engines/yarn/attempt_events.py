"""Report the starts and ends of attempts, with their logs: an end is reported once, when the log is complete."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from corral.engines.yarn.slots import Attempt, Phase
from corral.kernel.errors import CorralError, InvalidInput
from corral.kernel.ids import AttemptId
from corral.model.launch import EngineEvent, Exited, Started, TaskLaunch
from corral.storage.log_files import STREAMS, LogStore

_log = logging.getLogger(__name__)
MOST_LOG_PART: Final = 1024 * 1024
"""Bytes of one part of a log."""


class AttemptEvents:
    """The queue of events, and the logs of the attempts that they are about."""

    def __init__(
        self, logs: LogStore, wall: Callable[[], float], log_limit: int, ended: Callable[[AttemptId], None]
    ) -> None:
        """The last `log_limit` bytes of a stream's log are kept; 0 keeps all. `ended` is told of each end."""
        self._logs, self._wall, self._log_limit, self._ended = logs, wall, log_limit, ended
        self.queue: asyncio.Queue[EngineEvent | CorralError] = asyncio.Queue()

    def prepare(self, attempt: Attempt) -> None:
        """Make room for an attempt's log."""
        self._logs.prepare(attempt.name, split=attempt.launch is not None and splits(attempt.launch))

    def start(self, attempt: Attempt, started: Started) -> None:
        """Report a start; the log is there, and empty, before the task prints."""
        attempt.started, attempt.phase = started, Phase.STARTED
        split = attempt.launch is not None and splits(attempt.launch)
        for path in self._logs.prepare(attempt.name, split=split):
            with open(path, "ab"):
                pass
        self.queue.put_nowait(started)

    def end(self, attempt: Attempt, code: int, reason: str, number: int = 0) -> None:
        """Report an end, unless it was reported before; the log is complete from now on."""
        if attempt.exited is not None:
            return
        self._logs.prepare(attempt.name)
        size = self._logs.finish(attempt.name)
        attempt.phase = Phase.ENDED
        attempt.exited = Exited(attempt.name, self._wall(), code, number, reason, size)
        attempt.assigned.set()
        self._ended(attempt.name)
        self.queue.put_nowait(attempt.exited)

    async def append(self, attempt: Attempt, stream: str, offset: int, data: bytes) -> int:
        """Append a part of a log that begins at `offset`; returns the offset of the part wanted next.

        Raises InvalidInput for a part that cannot be one.
        """
        if stream not in STREAMS or len(data) > MOST_LOG_PART:
            message = f"A part of a log is for one of {', '.join(STREAMS)} and has at most {MOST_LOG_PART} bytes."
            raise InvalidInput("bad-log-part", message)
        if attempt.exited is not None:
            return offset + len(data)  # it was given up meanwhile: its log is complete
        self._logs.prepare(attempt.name)
        size = await asyncio.to_thread(_append, self._logs.path(attempt.name, stream), offset, data)
        before = size - len(data)
        if self._log_limit and size // self._log_limit > before // self._log_limit:
            try:
                await asyncio.to_thread(self._logs.drop_head, attempt.name, self._log_limit)
            except OSError as error:
                _log.warning("the head of the log of %s cannot be dropped: %s", attempt.name, error)
        return size


def splits(launch: TaskLaunch) -> bool:
    """Whether a task's output and errors have logs of their own."""
    return launch.env.get("CORRAL_SPLIT_LOGS") == "split"


def _append(path: str, offset: int, data: bytes) -> int:
    """Append `data` if the file ends at `offset`; the size of the file then."""
    with open(path, "ab") as file:
        size = file.tell()
        return size + file.write(data) if size == offset else size
