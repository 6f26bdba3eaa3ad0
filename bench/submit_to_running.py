"""Time a job from its submission to its first instruction; the promise is a tenth of a second."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import httpx2

from bench.harness import running_server
from bench.stats import median, percentile

RUNS = 100
WARM_UP = 3
PATIENCE_SECONDS = 20.0


def measure() -> dict[str, float]:
    """Milliseconds from just before the POST to the job's own first instruction (bash's clock)."""
    with running_server() as server, server.client() as client, tempfile.TemporaryDirectory() as folder:
        waits = [_one(client, Path(folder) / f"began-{number}", number) for number in range(RUNS + WARM_UP)]
    kept = waits[WARM_UP:]
    return {"p50": median(kept), "p99": percentile(kept, 0.99), "worst": max(kept)}


def _one(client: httpx2.Client, mark: Path, number: int) -> float:
    job = {
        "name": f"idle-{number}",
        "framework": "shell",
        "roles": {"worker": {"replicas": 1, "command": ["bash", "-c", 'printf %s "$EPOCHREALTIME" > "$0"', str(mark)]}},
    }
    begun = time.time()
    answer = client.post("/api/v3/jobs", json=job)
    answer.raise_for_status()
    reference = answer.json()["id"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (state := client.get(f"/api/v3/jobs/{reference}").json()["state"]) not in {"succeeded", "failed", "stopped"}:
        if time.monotonic() > deadline:
            raise RuntimeError(f"job {reference} was still {state} after {PATIENCE_SECONDS:.0f} s")
        time.sleep(0.02)
    if state != "succeeded":
        raise RuntimeError(f"job {reference} ended as {state}")
    return (float(mark.read_text()) - begun) * 1000
