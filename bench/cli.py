"""Time the command line's cold start, which users meet on every call."""

from __future__ import annotations

import subprocess
import time

from bench.harness import CORRAL, Server, running_server
from bench.stats import median, percentile

RUNS = 30


def measure() -> dict[str, float]:
    """The median of `corral version` and of `corral ls`, each in a process of its own, in ms."""
    with running_server() as server:
        version = [_milliseconds(server, "version") for _ in range(RUNS)]
        listing = [_milliseconds(server, "ls") for _ in range(RUNS)]
    return {
        "version": median(version),
        "ls": median(listing),
        "version p95": percentile(version, 0.95),
        "ls p95": percentile(listing, 0.95),
    }


def _milliseconds(server: Server, command: str) -> float:
    begun = time.perf_counter()
    subprocess.run([str(CORRAL), command], env=server.environment, check=True, capture_output=True)
    return (time.perf_counter() - begun) * 1000
