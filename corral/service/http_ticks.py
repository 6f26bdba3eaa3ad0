"""Look after an idle HTTP server once a second.

uvicorn calls `Server.on_tick` ten times a second, which is a quarter of what an idle control does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

TICK_SECONDS: Final = 1.0
_TICKS: Final = 10
"""uvicorn's ticks in a second: it does its work at each tenth."""
_DAY: Final = 864_000
"""Ticks after which uvicorn counts from 0 again."""


async def every_second(on_tick: Callable[[int], Awaitable[bool]], leave: asyncio.Event) -> None:
    """Call `on_tick` with the number of uvicorn's ticks, once a second and when `leave` is set, until it returns True."""
    counter = 0
    while not await on_tick(counter):
        counter = (counter + _TICKS) % _DAY
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TICK_SECONDS):
                await leave.wait()
