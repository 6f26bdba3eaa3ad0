"""Why: what is known of a large cluster must leave the machine's memory to its jobs: the real control, filled."""

from __future__ import annotations

import asyncio
import json

from bench.processes import pss
from bench.timed_engine import DURATION
from bench.timed_server import TimedServer, timed_server

NODES, JOBS = 8192, 20_000
_AT_ONCE = 8
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
        empty = pss([server.control])

        async def submit(first: int) -> None:
            for number in range(first, JOBS, _AT_ONCE):
                role = {
                    "replicas": 1 + number % 4,
                    "command": "train",
                    "resources": {"cpu": "1", "memory": "1Gi", "devices": 1 + number % 8},
                    "env": {DURATION: "1000000"},
                }
                job = {"name": f"job{number}", "framework": "shell", "roles": {"worker": role}}
                (await client.post("/api/v3/jobs", json=job)).raise_for_status()

        await asyncio.gather(*(submit(first) for first in range(_AT_ONCE)))
        top = (await client.get("/api/v3/top")).raise_for_status().json()
        return {
            "memory": pss([server.control]),
            "empty": empty,
            "running": float(top["running"]),
            "waiting": float(top["waiting"]),
        }
