"""Time the answer for a gang that a full cluster cannot start.

All devices of 500 nodes are held. A gang of two whole nodes arrives that may not preempt. The time runs from the REST
call to the answer that gives its reason.
"""

from __future__ import annotations

import asyncio
import time

from bench.k8s_cluster import CONNECTIONS, DEVICES, NODES, ServedCluster, get, job, served_cluster, submit, until
from bench.stats import median, percentile

ROUNDS = 20


def measure() -> dict[str, float]:
    """Seconds until a gang has a reason why it cannot start now; median and p95."""
    with served_cluster() as served:
        return asyncio.run(_ask(served))


async def _ask(served: ServedCluster) -> dict[str, float]:
    async with served.session() as session:
        numbers = iter(range(NODES))

        async def fill() -> None:
            for number in numbers:
                await submit(session, job(f"full-{number}", devices=DEVICES))

        await asyncio.gather(*(fill() for _ in range(CONNECTIONS)))

        async def full() -> bool:
            return not (await get(session, "/api/v3/jobs?limit=1&state=waiting&state=starting"))["items"]

        await until(full, "every node is full")
        await asyncio.sleep(2.0)
        times = []
        for at in range(ROUNDS):
            begun = time.perf_counter()
            gang = await submit(session, job(f"gang-{at}", 2, DEVICES))

            async def told(gang: str = gang) -> bool:
                waiting = (await get(session, f"/api/v3/jobs/{gang}"))["waiting"]
                return bool(waiting) and "devices" in waiting["message"]

            await until(told, "the gang is told which devices it waits for", every=0.005)
            times.append(time.perf_counter() - begun)
    return {"seconds": median(times), "p95": percentile(times, 0.95)}
