"""Answer a server that asks to set the clocks of a slow GPU, if the administrator allowed it: each GPU once an hour."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Final

import structlog

from corral.devices.nvidia_clocks import Clocks, set_highest_clocks
from corral.kernel.errors import NotFound, Unavailable

log = structlog.get_logger()

PATH: Final = "/fix-nvidia-gpu-low-perf/"
"""Then the minor number of the GPU."""
EVERY_SECONDS: Final = 3600.0
"""Seconds in which the clocks of one GPU are set at most once, also if that fails."""
_MINOR: Final = re.compile(r"[0-9]{1,4}")
_MOST: Final = 256
"""GPUs of which is remembered when they were set."""


class ClockFixes:
    """Sets clocks, one GPU at a time."""

    def __init__(
        self, set_clocks: Callable[[int], Clocks] = set_highest_clocks, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._set, self._steady = set_clocks, steady
        self._set_at: dict[int, float] = {}
        self._turn = asyncio.Lock()

    async def answer(self, path: str) -> tuple[int, str]:
        """The status and the sentence for a request to a path that begins with `PATH`."""
        number = path.removeprefix(PATH)
        if not _MINOR.fullmatch(number):
            return 404, "The path ends with the minor number of a GPU."
        minor, now = int(number), self._steady()
        async with self._turn:
            if (before := self._set_at.get(minor)) is not None and now < before + EVERY_SECONDS:
                return 429, f"The clocks of GPU {minor} were set less than an hour ago."
            if minor not in self._set_at and len(self._set_at) >= _MOST:
                return 404, f"There is no NVIDIA GPU of the minor number {minor} here."
            self._set_at[minor] = now
            return await self._fixed(minor)

    async def _fixed(self, minor: int) -> tuple[int, str]:
        try:
            clocks = await asyncio.to_thread(self._set, minor)
        except NotFound as error:
            return 404, error.message
        except Unavailable as error:
            log.warning("the clocks of a GPU could not be set", gpu=minor, reason=error.message)
            return 502, error.message
        log.info("the clocks of a GPU were set", gpu=minor, memory=clocks.memory, graphics=clocks.graphics)
        return 200, f"Its clocks are now {clocks.graphics} MHz, and {clocks.memory} MHz of its memory."
