"""Compare the rate of short local tasks with Slurm's on the same machine."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator

from bench import slurm
from bench.harness import Server, running_server
from bench.lean import LeanClient

JOBS, CONNECTIONS = 2_000, 16
LIVE = "&".join(f"state={state}" for state in ("waiting", "starting", "running", "stopping"))
PATIENCE_SECONDS = 300.0


def measure() -> dict[str, float]:
    """Tasks a second from the first submission to the last end, Slurm's figure in the same run, and the ratio."""
    with running_server() as server:
        ours = asyncio.run(_rate(server))
    peer = slurm.rate(JOBS)
    return {"rate": ours["rate"], "factor": ours["rate"] / peer, "slurm": peer, "submit rate": ours["submit rate"]}


async def _rate(server: Server) -> dict[str, float]:
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(LeanClient(server.url, server.token)) for _ in range(CONNECTIONS)]
        client, numbers = clients[0], iter(range(JOBS))
        begun = time.perf_counter()
        await asyncio.gather(*(_submit(each, numbers) for each in clients))
        submitted = time.perf_counter() - begun
        while (await client.get(f"/api/v3/jobs?limit=1&{LIVE}"))["items"]:
            if time.perf_counter() - begun > PATIENCE_SECONDS:
                raise RuntimeError(f"not all of {JOBS} jobs had ended after {PATIENCE_SECONDS:.0f} s")
            await asyncio.sleep(0.05)
        seconds = time.perf_counter() - begun
        failed = await client.get("/api/v3/jobs?limit=1&state=failed")
        if failed["items"]:
            raise RuntimeError(f"a job that runs `true` failed: {failed['items'][0]}")
    return {"rate": JOBS / seconds, "submit rate": JOBS / submitted}


async def _submit(client: LeanClient, numbers: Iterator[int]) -> None:
    for number in numbers:
        roles = {"worker": {"replicas": 1, "command": ["true"], "resources": {"cpu": "0", "memory": "0"}}}
        await client.post("/api/v3/jobs", {"name": f"true-{number}", "framework": "shell", "roles": roles})
