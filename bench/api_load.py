"""Time the job list page during long scheduling cycles, with many log followers and large documents."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2

from bench.abuse import one_after_the_other
from bench.harness import running_server
from bench.stats import median, percentile

JOBS, FOLLOWERS, CONNECTIONS = 4_000, 200, 8
READERS = ("followers", "validations", "starts")
"""Hostile clients of `bench.hostile`: 20 followers of 100 MB, 60 validations of 877 kB at once, 2,000 starts at once.
"""
CLUSTER = Path(__file__).resolve().parents[1] / "examples" / "cluster.yaml"
PAGE = "/api/v3/jobs?limit=50&state=waiting"
PAUSE_SECONDS = 0.02
LIVE = "&".join(f"state={state}" for state in ("waiting", "starting", "running", "stopping"))
PATIENCE_SECONDS = 400.0


def measure() -> dict[str, float]:
    """Milliseconds of the list page, fetched repeatedly while another process makes the load."""
    settings = {"CORRAL_LOGS_PER_USER": str(2 * FOLLOWERS)}
    with running_server("--cluster", str(CLUSTER), settings=settings) as server, server.client() as client:
        rows = one_after_the_other(server, client, READERS)
        load = subprocess.Popen(
            [sys.executable, "-m", "bench.api_load", server.url],
            env=server.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert load.stdout
            if load.stdout.readline().strip() != "attached":
                raise RuntimeError("the load's followers could not attach")
            times = []
            while load.poll() is None:
                begun = time.perf_counter()
                client.get(PAGE).raise_for_status()
                times.append((time.perf_counter() - begun) * 1000)
                time.sleep(PAUSE_SECONDS)
        finally:
            load.terminate()
            load.wait()
        if load.returncode:
            raise RuntimeError(f"the load ended with exit code {load.returncode}")
    return {"page-p99": percentile(times, 0.99), "page p50": median(times), "pages": float(len(times)), **rows}


async def make_load(url: str, token: str) -> None:
    """Attach the followers to one running job, then submit the jobs and wait for their ends."""
    limits = httpx2.Limits(max_connections=FOLLOWERS + CONNECTIONS + 4)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=None, limits=limits, trust_env=False
    ) as client:
        talker = await _submit(client, "talker", ["sh", "-c", "while :; do date; sleep 0.2; done"])
        async with contextlib.AsyncExitStack() as stack:
            path = f"/api/v3/jobs/{talker}/tasks/worker/0/logs?follow=true"
            streams = [await stack.enter_async_context(client.stream("GET", path)) for _ in range(FOLLOWERS)]
            readers = [asyncio.create_task(_drain(stream)) for stream in streams]
            print("attached", flush=True)
            numbers = iter(range(JOBS))
            await asyncio.gather(*(_submit_all(client, numbers) for _ in range(CONNECTIONS)))
            await _wait_until_only_the_talker_lives(client)
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)


async def _submit(client: httpx2.AsyncClient, name: str, command: list[str], devices: int = 0) -> str:
    resources = {"cpu": "0", "memory": "0", "devices": devices}
    roles = {"worker": {"replicas": 1, "command": command, "resources": resources}}
    answer = await client.post("/api/v3/jobs", json={"name": name, "framework": "shell", "roles": roles})
    answer.raise_for_status()
    return str(answer.json()["id"])


async def _submit_all(client: httpx2.AsyncClient, numbers: Iterator[int]) -> None:
    for number in numbers:
        await _submit(client, f"load-{number}", ["true"], devices=1)


async def _drain(stream: httpx2.Response) -> None:
    stream.raise_for_status()
    async for _ in stream.aiter_raw():
        pass


async def _wait_until_only_the_talker_lives(client: httpx2.AsyncClient) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len((await client.get(f"/api/v3/jobs?limit=2&{LIVE}")).json()["items"]) > 1:
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all of {JOBS} jobs had ended after {PATIENCE_SECONDS:.0f} s")
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    import os

    asyncio.run(make_load(sys.argv[1], os.environ["CORRAL_TOKEN"]))
