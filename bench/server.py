"""Measure the server's start, memory and idle load, since it may run on the machine that trains."""

from __future__ import annotations

import time

from bench.harness import running_server
from bench.processes import cpu_seconds, pss, tree
from bench.stats import median

STARTS = 5
SETTLE_SECONDS = 60.0
IDLE_SECONDS = 30.0


def measure() -> dict[str, float]:
    """Seconds to ready on an empty folder (median), then memory in MB and processor use in % of one core while idle."""
    starts = []
    for _ in range(STARTS - 1):
        with running_server() as server:
            starts.append(server.seconds_to_ready)
    with running_server() as server:
        starts.append(server.seconds_to_ready)
        time.sleep(SETTLE_SECONDS)
        pids = tree(server.supervisor)
        memory = pss(pids)
        used, begun = cpu_seconds(pids), time.perf_counter()
        time.sleep(IDLE_SECONDS)
        share = (cpu_seconds(pids) - used) / (time.perf_counter() - begun)
    return {
        "start": median(starts),
        "memory": memory,
        "cpu": share * 100,
        "slowest start": max(starts),
        "processes": float(len(pids)),
    }
