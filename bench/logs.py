"""Follow a log of 1 GB; the server's memory must not grow with its length."""

from __future__ import annotations

import threading
import time

from bench.harness import Server, running_server
from bench.processes import pss, tree

BYTES = 1_000_000_000
LINE = "x" * 99
PATIENCE_SECONDS = 120.0


def measure() -> dict[str, float]:
    """MB/s of one follower from the submission to the last byte of 1 GB, and the server's growth in memory meanwhile."""
    with running_server() as server:
        pids = tree(server.supervisor)
        before = pss(pids)
        peak = [before]
        done = threading.Event()
        watcher = threading.Thread(target=_watch, args=(pids, peak, done))
        watcher.start()
        try:
            seconds, received = _follow(server)
        finally:
            done.set()
            watcher.join()
    if received < BYTES:
        raise RuntimeError(f"the follower got {received} of {BYTES} bytes")
    return {"rate": received / 1e6 / seconds, "growth": peak[0] - before, "memory before": before}


def _follow(server: Server) -> tuple[float, int]:
    command = ["sh", "-c", f"yes {LINE} | head -c {BYTES}"]
    job = {"name": "talker", "framework": "shell", "roles": {"worker": {"replicas": 1, "command": command}}}
    with server.client(timeout=PATIENCE_SECONDS) as client:
        answer = client.post("/api/v3/jobs", json=job)
        answer.raise_for_status()
        path = f"/api/v3/jobs/{answer.json()['id']}/tasks/worker/0/logs?follow=true"
        received, begun = 0, time.perf_counter()
        with client.stream("GET", path) as stream:
            stream.raise_for_status()
            for chunk in stream.iter_raw():
                received += len(chunk)
        return time.perf_counter() - begun, received


def _watch(pids: list[int], peak: list[float], done: threading.Event) -> None:
    while not done.wait(0.2):
        peak[0] = max(peak[0], pss(pids))
