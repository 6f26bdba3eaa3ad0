"""Measure the memory of a real server on a cluster of 5,000 nodes.

Another process plays the API server (`bench.bigcluster`): 50,000 running pods of others, 20,000 of which change once.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.harness import Server, running_server
from bench.k8s_events import CONFIG
from bench.processes import cpu_seconds, pss, tree
from corral.supervisor import children_of

NODES, PODS, CHANGES = 5_000, 50_000, 20_000
PATIENCE_SECONDS = 240.0
_IDLE_SHARE = 0.05


def measure() -> dict[str, float]:
    """Megabytes (PSS) of control after it has read the whole cluster and is idle, and of the whole server."""
    with _told() as port, tempfile.TemporaryDirectory(prefix="corral-bench-") as folder:
        config = Path(folder) / "config"
        config.write_text(CONFIG.format(port=port))
        words = ("--engine", "kubernetes", "--kubeconfig", str(config), "--advertise", "http://127.0.0.1:1")
        begun = time.perf_counter()
        with running_server(*words, settings={"CORRAL_LOG_LEVEL": "warning"}, patience=PATIENCE_SECONDS) as server:
            seconds = time.perf_counter() - begun
            control = children_of(server.supervisor)["control"]
            _rest(control)
            with server.client() as client:
                total = client.get("/api/v3/top").raise_for_status().json()["total"]
            if total["devices"] != NODES * 8:
                raise RuntimeError(f"the server knows {total['devices']} devices")
            return {"memory": pss([control]), "whole server": _whole(server), "start": seconds}


def _whole(server: Server) -> float:
    return pss(tree(server.supervisor))


def _rest(control: int) -> None:
    """Wait until control has read everything."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        before = cpu_seconds([control])
        time.sleep(3.0)
        if cpu_seconds([control]) - before <= 3.0 * _IDLE_SHARE:
            return
    raise RuntimeError(f"control is still busy after {PATIENCE_SECONDS:.0f} s")


@contextlib.contextmanager
def _told() -> Iterator[int]:
    command = [sys.executable, "-m", "bench.bigcluster", str(NODES), str(PODS), str(CHANGES)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
