"""Fill an empty cluster of 500 nodes with one-device jobs.

4,000 jobs are submitted one by one through the API; the time ends when the API server has every pod Running.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence

import aiohttp

from bench.k8s_bare import Pair, objects_of, seconds_for
from bench.k8s_cluster import CONNECTIONS, ServedCluster, get, job, served_cluster, spent, submit, until

JOBS = 4_000


def measure() -> dict[str, float]:
    """Seconds from the first submission until the last pod is Running, and the processor time of each process."""
    with served_cluster() as served:
        measured = asyncio.run(fill(served))
        made = objects_of(served, claims=False)
    return measured | beside(measured["seconds"], made, claims=False)


def beside(seconds: float, made: Sequence[Pair], *, claims: bool) -> dict[str, float]:
    """Time a plain client that creates the same objects; also `seconds` divided by its time."""
    bare = seconds_for(made, claims=claims)
    return {"bare": bare, "times bare": seconds / bare}


async def fill(served: ServedCluster) -> dict[str, float]:
    """Submit the jobs and wait until all of their pods run."""
    async with served.session() as session:
        before, numbers, begun = served.used(), iter(range(JOBS)), time.perf_counter()
        await asyncio.gather(*(_submit_all(session, numbers) for _ in range(CONNECTIONS)))
        submitted = time.perf_counter() - begun

        async def none_waits() -> bool:
            return not (await get(session, "/api/v3/jobs?limit=1&state=waiting&state=starting"))["items"]

        await until(none_waits, "every job runs", every=0.25)
        seconds = time.perf_counter() - begun
        after = served.used()
        states = [pod["status"]["phase"] for pod in served.pods()]
        if states != ["Running"] * JOBS:
            raise RuntimeError(f"{len(states)} pods, {states.count('Running')} of them Running")
        return {"seconds": seconds, "submitted": submitted, **spent(before, after)}


async def _submit_all(session: aiohttp.ClientSession, numbers: Iterator[int]) -> None:
    for number in numbers:
        await submit(session, job(f"job-{number}"))
