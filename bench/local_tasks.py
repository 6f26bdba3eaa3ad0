"""Why: many short tasks are where a scheduler's own cost shows, and Slurm is what people would use instead."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import httpx2

from bench import slurm
from bench.harness import Server, running_server

JOBS, CONNECTIONS = 2_000, 16
LIVE = "&".join(f"state={state}" for state in ("waiting", "starting", "running", "stopping"))
PATIENCE_SECONDS = 300.0


def measure() -> dict[str, float]:
    """Tasks a second from the first submit to the last end, Slurm's figure in the same run, and the factor."""
    with running_server() as server:
        ours = asyncio.run(_rate(server))
    peer = slurm.rate(JOBS)
    return {"rate": ours["rate"], "factor": ours["rate"] / peer, "slurm": peer, "submit rate": ours["submit rate"]}


async def _rate(server: Server) -> dict[str, float]:
    headers = {"Authorization": f"Bearer {server.token}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60, trust_env=False) as client:
        numbers = iter(range(JOBS))
        begun = time.perf_counter()
        await asyncio.gather(*(_submit(client, numbers) for _ in range(CONNECTIONS)))
        submitted = time.perf_counter() - begun
        while (await _get(client, f"/api/v3/jobs?limit=1&{LIVE}"))["items"]:
            if time.perf_counter() - begun > PATIENCE_SECONDS:
                raise RuntimeError(f"not all of {JOBS} jobs had ended after {PATIENCE_SECONDS:.0f} s")
            await asyncio.sleep(0.05)
        seconds = time.perf_counter() - begun
        failed = await _get(client, "/api/v3/jobs?limit=1&state=failed")
        if failed["items"]:
            raise RuntimeError(f"a job that runs `true` failed: {failed['items'][0]}")
    return {"rate": JOBS / seconds, "submit rate": JOBS / submitted}


async def _submit(client: httpx2.AsyncClient, numbers: Iterator[int]) -> None:
    for number in numbers:
        roles = {"worker": {"replicas": 1, "command": ["true"], "resources": {"cpu": "0", "memory": "0"}}}
        answer = await client.post("/api/v3/jobs", json={"name": f"true-{number}", "framework": "shell", "roles": roles})
        answer.raise_for_status()


async def _get(client: httpx2.AsyncClient, path: str) -> dict[str, list[object]]:
    answer = await client.get(path)
    answer.raise_for_status()
    found: dict[str, list[object]] = answer.json()
    return found
