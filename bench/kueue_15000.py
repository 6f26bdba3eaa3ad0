"""Run the load of Kueue's performance test in real time through the API, until all of it is done.

The generator is that of Kueue's performance test (test/performance/scheduler, baseline): 5 cohorts of 6 queues. A queue
has a quota of 20 units and may borrow 100. It submits 350 workloads of 1 unit for 0.2 s (one every 0.1 s, priority 50),
100 of 5 units for 0.5 s (every 0.5 s, priority 100) and 50 of 20 units for 1 s (every 1.2 s, priority 200). A unit is a
processor here. The front, the store, the scheduler and the launcher are the real ones; tasks end by the clock.
"""

from __future__ import annotations

import asyncio
import json
import time

import httpx2

from bench.processes import cpu_seconds
from bench.timed_engine import DURATION
from bench.timed_server import TimedServer, timed_server

COHORTS, QUEUES = 5, 6
KINDS = ((350, 0.1, 1, 0.2, 50), (100, 0.5, 5, 0.5, 100), (50, 1.2, 20, 1.0, 200))
"""Of each kind: the count, seconds between two, units, seconds of work, priority."""
UNITS = 120
"""Units of one cohort."""
PATIENCE_SECONDS = 400.0


def measure() -> dict[str, float]:
    """Seconds from the first submission until all 15,000 have succeeded, and the number of preemptions."""
    with timed_server(_documents()) as server:
        return asyncio.run(_play(server))


def _documents() -> str:
    """One machine per cohort, so that cohorts share nothing, and their queues."""
    nodes = {f"cohort{at}": {"labels": {"cohort": str(at)}} for at in range(COHORTS)}
    cluster = {"kind": "Cluster", "engine": "local", "node": {"cpu": str(UNITS), "memory": "64Gi"}, "nodes": nodes}
    queues = []
    for cohort in range(COHORTS):
        queues.append({"kind": "Queue", "name": f"c{cohort}", "limit": {"cpu": str(UNITS)}})
        queues += [
            {
                "kind": "Queue",
                "name": f"c{cohort}q{at}",
                "parent": f"c{cohort}",
                "deserved": {"cpu": "20"},
                "borrowingLimit": {"cpu": "100"},
                "preemption": {"withinQueue": "lower-priority", "reclaim": "any"},
            }
            for at in range(QUEUES)
        ]
    return "---\n".join(json.dumps(document) + "\n" for document in (cluster, *queues))


async def _play(server: TimedServer) -> dict[str, float]:
    async with server.client() as client:
        await _settled(client)
        begun = time.perf_counter()
        await asyncio.gather(
            *(
                _submit(client, cohort, at, kind, begun)
                for cohort in range(COHORTS)
                for at in range(QUEUES)
                for kind in range(len(KINDS))
            )
        )
        submitted = time.perf_counter() - begun
        await _settled(client)
        seconds = time.perf_counter() - begun
        done = await _count(client, "succeeded")
        wanted = COHORTS * QUEUES * sum(kind[0] for kind in KINDS)
        if done != wanted:
            raise RuntimeError(f"{done} of {wanted} workloads succeeded")
        cpu = cpu_seconds([server.control])
        receipts = await _receipts(client)
    return {"seconds": seconds, "submitted": submitted, "yielded": float(receipts), "cpu": cpu}


async def _submit(client: httpx2.AsyncClient, cohort: int, at: int, kind: int, begun: float) -> None:
    """Submit one queue's workloads of one kind, each at its time, or as soon after it as the server accepts it."""
    count, every, units, seconds, priority = KINDS[kind]
    for number in range(count):
        wait = begun + number * every - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        job = {
            "name": f"c{cohort}q{at}-{kind}-{number}",
            "framework": "shell",
            "queue": f"c{cohort}q{at}",
            "priority": priority,
            "roles": {
                "w": {
                    "replicas": 1,
                    "command": "true",
                    "resources": {"cpu": str(units), "memory": "1Mi"},
                    "env": {DURATION: str(seconds)},
                    "nodeSelector": {"cohort": str(cohort)},
                }
            },
        }
        answer = await client.post("/api/v3/jobs", json=job)
        answer.raise_for_status()


async def _settled(client: httpx2.AsyncClient) -> None:
    """Wait until no job is waiting, starting, running or stopping."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        top = (await client.get("/api/v3/top")).raise_for_status().json()
        if not top["running"] and not top["waiting"] and not await _between(client):
            return
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"still {top['running']} running and {top['waiting']} waiting after {PATIENCE_SECONDS:.0f} s"
            )
        await asyncio.sleep(0.5)


async def _between(client: httpx2.AsyncClient) -> bool:
    """Whether any workload is starting or stopping."""
    for state in ("starting", "stopping"):
        page = await client.get("/api/v3/jobs", params={"state": state, "limit": 1})
        if page.raise_for_status().json()["items"]:
            return True
    return False


async def _count(client: httpx2.AsyncClient, state: str) -> int:
    count, after = 0, ""
    while True:
        page = await client.get("/api/v3/jobs", params={"state": state, "limit": 500, "after": after})
        found = page.raise_for_status().json()
        count += len(found["items"])
        after = found.get("next") or ""
        if not after:
            return count


async def _receipts(client: httpx2.AsyncClient) -> int:
    count, after = 0, ""
    while True:
        page = await client.get("/api/v3/receipts", params={"limit": 500, "after": after})
        found = page.raise_for_status().json()
        count += len(found["items"])
        after = found.get("next") or ""
        if not after:
            return count
