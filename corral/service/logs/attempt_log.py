"""The log of one attempt of a task, which may not have begun, or never be completed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from corral.kernel.ids import AttemptId
from corral.storage.log_sources import Log

_LOST_SECONDS: Final = 120.0
"""Seconds after an attempt's end for which readers wait for the rest of its log."""
_LOOK_SECONDS: Final = 1.0
"""Longest wait, in seconds, for bytes of a missing log before it is looked up again."""


class TaskLog:
    """The log of one attempt; if nothing is ever written, it ends with the attempt.

    A missing log is looked up again, because only an existing one shows whether the attempt splits its streams.
    """

    def __init__(
        self,
        attempt: AttemptId,
        stream: str,
        file: Log,
        over: Callable[[], Awaitable[bool]],
        look: Callable[[], Awaitable[Log]] | None = None,
    ) -> None:
        self.attempt = attempt
        self.stream = stream
        self._over = over
        self._look = look
        self._over_since: float | None = None
        self._take(file)

    def _take(self, file: Log) -> None:
        self._file = file
        self.size, self.read, self.tail, self.close = file.size, file.read, file.tail, file.close

    async def wait(self, offset: int, seconds: float) -> bool:
        """Wait at most `seconds` for bytes beyond `offset`; False if there will never be any."""
        if not self._file.exists():
            if await self._over():
                return self._file.exists()
            if self._look is not None:
                await self._file.close()
                self._take(await self._look())
            seconds = min(seconds, _LOOK_SECONDS)
        if not await self._file.wait(offset, seconds):
            return False
        return not await self._lost(offset)

    async def _lost(self, offset: int) -> bool:
        """Whether the rest will never come: the attempt ended 2 minutes ago, and its log was never completed.

        Its machine is gone, or the disk could not store the end.
        """
        if await self._file.size() > offset or not await self._over():
            self._over_since = None
            return False
        now = asyncio.get_running_loop().time()
        self._over_since = self._over_since or now
        return now - self._over_since >= _LOST_SECONDS
