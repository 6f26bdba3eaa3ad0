"""Measure the memory of a real control that holds a large cluster."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator

import httpx2

from bench.processes import cpu_seconds, pss
from bench.timed_engine import DURATION
from bench.timed_server import CONNECTIONS, TimedServer, timed_server

NODES, JOBS = 8192, 20_000
PATIENCE_SECONDS = 120.0
_IDLE_SHARE = 0.05
"""Control counts as idle when it uses less than this share of one processor."""
_SHOWN_EVERY = 2000
_CLUSTER = {
    "kind": "Cluster",
    "engine": "local",
    "node": {
        "cpu": "96",
        "memory": "1Ti",
        "devices": {"count": 8, "model": "a100", "cells": {"numa": 4, "pcie-switch": 2}},
    },
    "racks": {f"rack{at}": {"nodes": [f"node[{16 * at + 1:04}-{16 * at + 16:04}]"]} for at in range(NODES // 16)},
}


def measure() -> dict[str, float]:
    """Megabytes of control (PSS) with 65,536 devices and 20,000 jobs, as many of them running as fit."""
    with timed_server(json.dumps(_CLUSTER)) as server:
        return asyncio.run(_fill(server))


async def _fill(server: TimedServer) -> dict[str, float]:
    async with server.client() as client:
        await _rest(server)
        empty, numbers, begun = pss([server.control]), iter(range(JOBS)), time.perf_counter()
        used = cpu_seconds([server.control])
        await asyncio.gather(*(_submit(client, numbers, begun) for _ in range(CONNECTIONS)))
        await _rest(server)
        top = (await client.get("/api/v3/top")).raise_for_status().json()
        if top["running"] + top["waiting"] != JOBS:
            raise RuntimeError(f"{top['running']} run and {top['waiting']} wait of {JOBS} jobs")
        memory = pss([server.control])
        return {
            "memory": memory,
            "empty": empty,
            "per job": (memory - empty) * 1000 / JOBS,
            "running": float(top["running"]),
            "waiting": float(top["waiting"]),
            "cpu": (cpu_seconds([server.control]) - used) * 1000 / JOBS,
        }


async def _submit(client: httpx2.AsyncClient, numbers: Iterator[int], begun: float) -> None:
    """Submit jobs over one connection, one after the other; prints progress on stderr."""
    for number in numbers:
        role = {
            "replicas": 1 + number % 4,
            "command": "train",
            "resources": {"cpu": "1", "memory": "1Gi", "devices": 1 + number % 8},
            "env": {DURATION: "1000000"},
        }
        job = {"name": f"job{number}", "framework": "shell", "roles": {"worker": role}}
        (await client.post("/api/v3/jobs", json=job)).raise_for_status()
        if (number + 1) % _SHOWN_EVERY == 0:
            print(f"{number + 1} jobs in {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)


async def _rest(server: TimedServer) -> None:
    """Wait until control is idle."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        before = cpu_seconds([server.control])
        await asyncio.sleep(2.0)
        if cpu_seconds([server.control]) - before <= 2.0 * _IDLE_SHARE:
            return
    raise RuntimeError(f"control is still busy after {PATIENCE_SECONDS:.0f} s")
