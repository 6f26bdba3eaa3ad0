"""Ask a running server again and again why jobs wait, until when, and what would help: 4,000 jobs on 500 nodes.

Front, control, store and the forecast's process are the real ones; tasks end by the clock. A job is submitted each second,
so that the state changes and the forecast is made anew.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

import httpx2

from bench.processes import cpu_seconds, tree
from bench.stats import median, percentile
from bench.timed_engine import DURATION
from bench.timed_server import CONNECTIONS, TimedServer, timed_server

NODES: Final = 500
JOBS: Final = 4000
ASKS: Final = 200
_SHAPES: Final = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8))
"""Tasks, and devices of each, of a job, as in `bench.what_if`."""
_SHORTEST, _LONGEST = 600, 6 * 3600
_PAUSE: Final = 0.2
_IDLE_SECONDS: Final = 20.0
_PATIENCE: Final = 300.0


def measure() -> dict[str, float]:
    """Milliseconds of an answer (p95, p50), the age of its forecast in seconds, and what control uses when nobody asks."""
    cluster = {
        "kind": "Cluster",
        "engine": "local",
        "node": {"cpu": "128", "memory": "1Ti", "devices": {"count": 8}},
        "nodes": {f"node{at}": {} for at in range(NODES)},
    }
    with timed_server(json.dumps(cluster) + "\n") as server:
        return asyncio.run(_asked(server))


async def _asked(server: TimedServer) -> dict[str, float]:
    draw = random.Random(1)
    async with server.client() as client:
        numbers = iter(range(JOBS))
        await asyncio.gather(*(_submit_all(client, numbers, draw) for _ in range(CONNECTIONS)))
        waiting = await _settled(client)
        await _explained(client, waiting[0])  # the first forecast is made
        times, ages, bases = [], [], Counter[str]()
        submitting = asyncio.create_task(_keep_submitting(client, draw))
        for _ in range(ASKS):
            begun = time.perf_counter()
            found = await _explained(client, draw.choice(waiting))
            times.append((time.perf_counter() - begun) * 1000)
            if estimate := found.get("estimate"):
                bases[estimate["basis"]] += 1
                if estimate["forecast"]:
                    ages.append(
                        (datetime.now(UTC) - datetime.fromisoformat(estimate["forecast"]["at"])).total_seconds()
                    )
            await asyncio.sleep(_PAUSE)
        submitting.cancel()
        idle = await _idle(server)
    return {
        "p95": percentile(times, 0.95),
        "p50": median(times),
        "slowest": max(times),
        "forecast age p95": percentile(ages, 0.95),
        "forecast age p50": median(ages),
        "with a forecast": len(ages) / ASKS * 100,
        "waiting": float(len(waiting)),
        "idle": idle,
        **{f"basis {basis}": float(count) for basis, count in bases.items()},
    }


async def _idle(server: TimedServer) -> float:
    """Percent of a processor that control uses while nobody asks, once the last forecast has ended."""
    await asyncio.sleep(_IDLE_SECONDS)
    used, begun = cpu_seconds(tree(server.control)), time.perf_counter()
    await asyncio.sleep(_IDLE_SECONDS)
    return (cpu_seconds(tree(server.control)) - used) / (time.perf_counter() - begun) * 100


async def _submit_all(client: httpx2.AsyncClient, numbers: Any, draw: random.Random) -> None:
    for number in numbers:
        await _submit(client, number, draw)


async def _keep_submitting(client: httpx2.AsyncClient, draw: random.Random) -> None:
    number = JOBS
    while True:
        await _submit(client, number, draw)
        number += 1
        await asyncio.sleep(1.0)


async def _submit(client: httpx2.AsyncClient, number: int, draw: random.Random) -> None:
    tasks, devices = draw.choice(_SHAPES)
    seconds = draw.randint(_SHORTEST, _LONGEST)
    role = {
        "replicas": tasks,
        "command": "true",
        "resources": {"cpu": 1, "memory": "1Gi", "devices": devices},
        "env": {DURATION: str(seconds)},
    }
    job = {"name": f"job-{number}", "framework": "shell", "maxDuration": seconds, "roles": {"worker": role}}
    (await client.post("/api/v3/jobs", json=job)).raise_for_status()


async def _explained(client: httpx2.AsyncClient, job: str) -> dict[str, Any]:
    answer = await client.get(f"/api/v3/jobs/{job}/explain")
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


async def _settled(client: httpx2.AsyncClient) -> list[str]:
    """Wait until the scheduler has looked at every job; returns those that wait."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        entries = await _line(client)
        starting = (
            (await client.get("/api/v3/jobs", params={"state": "starting", "limit": 1})).raise_for_status().json()
        )
        if entries and not starting["items"] and all(entry["reason"] for entry in entries):
            return [entry["job"] for entry in entries]
        if time.monotonic() > deadline:
            raise RuntimeError(f"the scheduler has not looked at all jobs after {_PATIENCE:.0f} s")
        await asyncio.sleep(2.0)


async def _line(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = await client.get("/api/v3/line", params={"limit": 500, "after": after})
        answer: dict[str, Any] = page.raise_for_status().json()
        found += answer["items"]
        after = answer["next"] or ""
        if not after:
            return found
