"""Time a job from its submission to its start while parts of monitoring are killed as they write, and while none is.

Control's loop and store are the real ones, with an engine without machines. Blocks with and without the kills alternate.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import pytest

from bench.stats import median, percentile
from corral.kernel.ids import AttemptId
from corral.model.launch import TaskLaunch
from tests.control.harness import House, PaperEngine, short
from tests.control.test_monitoring_is_killed import ended, killing

BLOCKS = 8
JOBS = 24
WARM_UP = 2
EVERY_SECONDS = 0.5
"""Seconds between two kills."""
_PARTS = ("alerts", "health")
"""Those that submit no jobs of their own."""


class _Engine(PaperEngine):
    """Notes when it is asked for a start."""

    def __init__(self) -> None:
        super().__init__(nodes=1, devices=4)
        self.asked: asyncio.Queue[tuple[float, AttemptId]] = asyncio.Queue()

    async def start(self, launch: TaskLaunch) -> None:
        at = time.perf_counter()
        await super().start(launch)
        self.asked.put_nowait((at, launch.attempt))


def measure() -> dict[str, float]:
    """Milliseconds from submission to start, alone and beside the kills, and how many writes were cut."""
    return asyncio.run(_measured())


async def _measured() -> dict[str, float]:
    cuts: list[int] = []
    waits: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        engine = _Engine()
        house = House(Path(folder), engine)
        await house.open()
        await house.begin()
        try:
            for block in range(2 * BLOCKS):
                kills, part = bool(block % 2), _PARTS[block // 2 % len(_PARTS)]
                with pytest.MonkeyPatch.context() as patch:
                    work = killing(house, part, Path(folder), patch, cuts, EVERY_SECONDS) if kills else asyncio.sleep(0)
                    beside = asyncio.create_task(work)
                    found = [await _one(house, engine, f"job-{block}-{number}") for number in range(JOBS)]
                    await ended(beside)
                waits[kills] += found[WARM_UP:]
        finally:
            await house.close()
    if not sum(cuts):
        raise RuntimeError("no write of monitoring was cut")
    alone, killed = waits[False], waits[True]
    return {
        "alone-p50": median(alone),
        "killed-p50": median(killed),
        "killed-p99": percentile(killed, 0.99),
        "cut": float(sum(cuts)),
    }


async def _one(house: House, engine: _Engine, name: str) -> float:
    begun = time.perf_counter()
    job = await house.submit(short(name, devices=1))
    async with house.patience():
        at, attempt = await engine.asked.get()
    engine.end(attempt, 0)
    await house.until(job, "succeeded")
    return (at - begun) * 1000
