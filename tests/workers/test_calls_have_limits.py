"""A worker's call has limits, ends with its caller, and leaves the worker usable for the next one."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator

import pytest

from corral.kernel.errors import Unavailable
from corral.workers.pool import LimitExceeded, Limits, Workers


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    made = Workers(size=1, waiting=1)
    yield made
    await made.close()


async def test_answers_and_refusals_come_back_from_one_process(workers: Workers) -> None:
    first = await workers.call(os.getpid)
    assert first != os.getpid()
    with pytest.raises(ValueError, match="invalid literal"):
        await workers.call(int, "x")
    assert await workers.call(os.getpid) == first


async def test_memory_and_processor_time_are_bounded(workers: Workers) -> None:
    with pytest.raises(LimitExceeded, match="memory"):
        await workers.call(bytes, 1 << 30, limits=Limits(memory=1 << 30))
    with pytest.raises(LimitExceeded, match="processor time"):
        await workers.call(pow, 3, 1 << 40, limits=Limits(cpu_seconds=1))
    assert await workers.call(abs, -1) == 1


async def test_what_cannot_be_passed_on_is_said(workers: Workers) -> None:
    with pytest.raises(RuntimeError, match="cannot be passed on"):
        await workers.call(threading.Lock)


async def test_a_caller_who_leaves_ends_the_work_and_one_too_many_is_refused(workers: Workers) -> None:
    process = await workers.call(os.getpid)
    running = [asyncio.create_task(workers.call(pow, 3, 1 << 40)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="too many large requests"):
        await workers.call(abs, -1)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    assert await workers.call(abs, -1) == 1
    async with asyncio.timeout(120):
        while os.path.exists(f"/proc/{process}"):
            await asyncio.sleep(0.01)
