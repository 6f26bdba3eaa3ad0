"""An HTTP server is looked after once a second, and leaves at once when it is told to."""

from __future__ import annotations

import asyncio
from unittest.mock import patch

from corral.service import http_ticks
from corral.service.http_ticks import every_second


async def test_it_ticks_by_tens_until_a_tick_says_to_stop() -> None:
    told: list[int] = []

    async def tick(counter: int) -> bool:
        told.append(counter)
        return len(told) == 3

    with patch.object(http_ticks, "TICK_SECONDS", 0.0):
        await every_second(tick, asyncio.Event())
    assert told == [0, 10, 20]


async def test_it_leaves_between_two_ticks() -> None:
    leave = asyncio.Event()
    told: list[int] = []

    async def tick(counter: int) -> bool:
        told.append(counter)
        return leave.is_set()

    with patch.object(http_ticks, "TICK_SECONDS", 3600.0):
        serving = asyncio.create_task(every_second(tick, leave))
        await asyncio.sleep(0)
        leave.set()
        async with asyncio.timeout(60):
            await serving
    assert told == [0, 10]
