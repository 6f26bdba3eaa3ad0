"""Why: a server that runs for years must not grow for years: old jobs shrink to a line of history, their logs go."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from corral.control.loop import Control
from corral.kernel.errors import Unavailable
from corral.kernel.ids import JobId
from corral.storage.logs import LogStore

log = structlog.get_logger()

_EVERY_SECONDS: Final = 600.0
_AT_ONCE: Final = 200


class Housekeeping:
    """Retires jobs that ended long ago, and removes the logs of jobs that are gone."""

    def __init__(self, control: Control, logs: LogStore, *, retention_seconds: float) -> None:
        """`retention_seconds` 0 keeps everything for ever."""
        self._control = control
        self._logs = logs
        self._retention = retention_seconds
        control.removed = self.forget

    async def run(self) -> None:
        """Look once every ten minutes until cancelled."""
        await self._control.ready.wait()
        while True:
            try:
                await self.retire(self._control.clock.now())
            except Unavailable as error:
                log.warning("old jobs could not be retired", code=error.code, message=error.message)
            await asyncio.sleep(_EVERY_SECONDS)

    async def retire(self, now: float) -> int:
        """Retire every job that ended more than the retention ago; how many.

        Raises Unavailable, LeadershipLost.
        """
        if not self._retention:
            return 0
        count = 0
        while True:
            gone = await self._control.retire(now - self._retention, _AT_ONCE)
            for job in gone:
                self.forget(job)
            count += len(gone)
            if len(gone) < _AT_ONCE:
                return count

    def forget(self, job: JobId) -> None:
        """Remove the logs of a job that is gone."""
        self._logs.remove(job)
