"""Measure how much each hostile client slows the server down for one honest reader.

For each client: the 99th percentile of the reader's job list page, the largest growth of front's memory, and the
server's processor seconds per second. The page may take three times its quiet figure or 100 ms, whichever is more.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator

import httpx2

from bench.harness import Server, running_server
from bench.hostile import LOADS
from bench.processes import cpu_seconds, pss, tree
from bench.stats import percentile
from corral.supervisor import children_of

PAGE = "/api/v3/jobs?limit=50"
SECONDS = 12.0
QUIET_SECONDS = 6.0
PAUSE_SECONDS = 0.02
AFTER_SECONDS = 60.0
BEGIN_SECONDS = 120.0
LEAST_MS = 100.0
SETTINGS = {"CORRAL_LOG_LEVEL": "error"}


def measure() -> dict[str, float]:
    """`NAME`: the page's 99th percentile divided by its bound; `memory-back`: MB above idle a minute later."""
    with running_server(settings=SETTINGS) as server, server.client() as client:
        return one_after_the_other(server, client, LOADS)


def one_after_the_other(server: Server, client: httpx2.Client, names: Iterable[str]) -> dict[str, float]:
    """Measure these hostile clients in turn, and front's memory a minute after the last of them."""
    client.get(PAGE).raise_for_status()
    quiet = _page(client, QUIET_SECONDS)
    idle = pss([front(server)])
    bound = max(3 * quiet, LEAST_MS)
    found = {"quiet p99 ms": quiet, "idle MB": idle}
    for name in names:
        found |= beside(server, client, name, bound)
    for job in client.get("/api/v3/jobs", params={"state": "running"}).json()["items"]:
        client.post(f"/api/v3/jobs/{job['id']}/stop").raise_for_status()
    time.sleep(AFTER_SECONDS)
    found["memory-back"] = pss([front(server)]) - idle
    return found


def beside(server: Server, client: httpx2.Client, name: str, bound: float) -> dict[str, float]:
    """Measure one hostile client."""
    pids, pid = tree(server.supervisor), front(server)
    with hostile(server, name), _peak(pid) as peak:
        used, at = cpu_seconds(pids), time.perf_counter()
        page = _page(client, SECONDS)
        busy = (cpu_seconds(pids) - used) / (time.perf_counter() - at)
    return {name: page / bound, f"{name} p99 ms": page, f"{name} MB": peak[1] - peak[0], f"{name} cpu": busy}


@contextlib.contextmanager
def hostile(server: Server, name: str) -> Iterator[None]:
    """Run one hostile client as a process.

    Raises RuntimeError when it does not begin, or ends by itself.
    """
    client = subprocess.Popen(
        [sys.executable, "-m", "bench.hostile", name], env=server.environment, stdout=subprocess.PIPE, text=True
    )
    guard = threading.Timer(BEGIN_SECONDS, client.kill)
    guard.start()
    try:
        assert client.stdout
        if client.stdout.readline().strip() != "begun":
            raise RuntimeError(f"the hostile client {name} did not begin")
        yield
        if client.poll() is not None:
            raise RuntimeError(f"the hostile client {name} ended with exit code {client.returncode}")
    finally:
        guard.cancel()
        client.terminate()
        client.wait()


def front(server: Server) -> int:
    """The pid of the server's front process."""
    pid = children_of(server.supervisor).get("front")
    if pid is None:
        raise RuntimeError("the server has no front")
    return pid


def _page(client: httpx2.Client, seconds: float) -> float:
    """Fetch the job list page repeatedly for `seconds`; the 99th percentile in milliseconds."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        client.get(PAGE).raise_for_status()
        times.append((time.perf_counter() - begun) * 1000)
        time.sleep(PAUSE_SECONDS)
    return percentile(times, 0.99)


@contextlib.contextmanager
def _peak(pid: int) -> Iterator[list[float]]:
    """Sample a process's memory in MB: the first value, then the largest since."""
    first = pss([pid])
    seen, done = [first, first], threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            seen[1] = max(seen[1], pss([pid]))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()
