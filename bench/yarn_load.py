"""Run a hundred one-task jobs over two NodeManagers, beside the same services posted by hand at the same rate.

By hand each service has one container that ends with its command, and the service with it (`restart_policy: NEVER`). Half
of the queue's memory is for the masters of services, so that as many start at once in both. All daemons, masters and the
client share this machine's processors. Corral's own processor time is that of supervisor, front and control, from the
first submission to the last end, beside the same jobs on the local engine. A further server runs the jobs in a shared
service (`yarn_share_mb`).
"""

from __future__ import annotations

import sys
import time
import urllib.error
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx2

from bench.harness import Server, running_server
from bench.processes import cpu_seconds
from corral import supervisor
from tests.reserved import free_port
from tests.testbeds.hadoop.hdfs import Hdfs
from tests.testbeds.hadoop.yarn import ATTRIBUTE, Yarn

JOBS: Final = 100
_A_SECOND: Final = 2.0
"""Submissions a second."""
_PATIENCE_SECONDS: Final = 3600.0
_NODES: Final = ("nm1", "nm2")
_LIVE: Final = ("waiting", "starting", "running", "stopping")
_MASTERS: Final = {"yarn.scheduler.capacity.root.default.maximum-am-resource-percent": 0.5}
_SHARED: Final = {"CORRAL_YARN_SHARE_MB": "128"}
_SETTINGS: Final = {"CORRAL_LOG_LEVEL": "warning", "CORRAL_YARN_START_SECONDS": "3600"}
"""A service by hand waits for its container as long as it takes."""


def measure() -> dict[str, float]:
    """Seconds to the last end by hand and by Corral, and processor time of a job on YARN and on the local engine.

    The most masters at once are those of services that had not ended when YARN was asked, every half second.
    """
    with Hdfs() as hdfs, Yarn(hdfs, settings=_MASTERS) as yarn:
        bare = _by_hand(yarn)
        _until(lambda: not _apps(yarn))
        ours, processor, masters = _on_yarn(yarn, {})
        with running_server(settings={"CORRAL_LOG_LEVEL": "warning"}, patience=120) as server:
            _, local, _ = _by_corral(server, lambda: 0)
        shared, _, shared_masters = _on_yarn(yarn, _SHARED)
    return {
        "share": ours / bare,
        "seconds": ours,
        "by hand": bare,
        "processor": processor / JOBS * 1000,
        "local processor": local / JOBS * 1000,
        "masters": float(masters),
        "shared": shared,
        "shared masters": float(shared_masters),
    }


def _on_yarn(yarn: Yarn, settings: Mapping[str, str]) -> tuple[float, float, int]:
    """Run the jobs on a server of their own, and wait until its services have ended."""
    port = free_port()
    cluster = ("--yarn-resource-managers", yarn.url, "--yarn-name-nodes", yarn.hdfs.web.replace("webhdfs", "http"))
    where = ("--port", str(port), "--advertise", f"http://127.0.0.1:{port}")
    given = {**_SETTINGS, **settings}
    with running_server("--engine", "yarn", *cluster, *where, settings=given, patience=120) as server:
        found = _by_corral(server, lambda: len(_apps(yarn)))
        _until(lambda: not _apps(yarn))
    return found


def _by_hand(yarn: Yarn) -> float:
    """Post the services; seconds until the last one has ended."""
    begun = time.monotonic()
    for number in range(JOBS):
        _pace(begun, number)
        yarn.ask("/app/v1/services", method="POST", body=_service(f"load-{number}", _NODES[number % len(_NODES)]))
    _until(lambda: len(_apps(yarn, "SUCCEEDED")) == JOBS)
    seconds = time.monotonic() - begun
    print(f"{JOBS} services by hand: {seconds:.1f} s", file=sys.stderr)
    for number in range(JOBS):
        try:
            yarn.ask(f"/app/v1/services/load-{number}", method="DELETE")
        except urllib.error.HTTPError:
            continue  # it has removed itself
    return seconds


def _service(name: str, node: str) -> dict[str, Any]:
    constraint = {"name": "n", "type": "AFFINITY", "scope": "NODE", "node_attributes": {ATTRIBUTE: [node]}}
    component = {
        "name": "main",
        "number_of_containers": 1,
        "restart_policy": "NEVER",
        "launch_command": "true",
        "resource": {"cpus": 1, "memory": "128"},
        "placement_policy": {"constraints": [constraint]},
    }
    return {"name": name, "version": "1", "queue": "default", "components": [component]}


def _by_corral(server: Server, masters: Callable[[], int]) -> tuple[float, float, int]:
    """Submit the jobs; seconds until the last has ended, Corral's processor seconds meanwhile, and the most masters."""
    processes = [server.supervisor, *supervisor.children_of(server.supervisor).values()]
    resources = {"cpu": 1, "memory": "128Mi"}
    with server.client() as client:
        before, begun = cpu_seconds(processes), time.monotonic()
        for number in range(JOBS):
            _pace(begun, number)
            role = {"resources": resources, "command": "true"}
            body = {"name": f"load-{number}", "framework": "shell", "roles": {"main": role}}
            client.post("/api/v3/jobs", json=body).raise_for_status()
        most = 0

        def over() -> bool:
            nonlocal most
            most = max(most, masters())
            return not _jobs(client, _LIVE)

        _until(over)
        seconds = time.monotonic() - begun
        used = cpu_seconds(processes) - before
        if (failed := len(_jobs(client, ("failed", "stopped")))) > 0:
            raise RuntimeError(f"{failed} jobs did not succeed")
    print(f"{JOBS} jobs: {seconds:.1f} s, {used:.1f} s of processor, {most} masters at once", file=sys.stderr)
    return seconds, used, most


def _jobs(client: httpx2.Client, states: tuple[str, ...]) -> list[Any]:
    answer = client.get("/api/v3/jobs", params={"state": list(states), "limit": 500}).raise_for_status()
    return list(answer.json()["items"])


def _apps(yarn: Yarn, status: str = "UNDEFINED") -> list[str]:
    apps = (yarn.ask("/ws/v1/cluster/apps")["apps"] or {}).get("app", [])
    return [each["id"] for each in apps if each["finalStatus"] == status]


def _pace(begun: float, number: int) -> None:
    """Wait until the submission with this number is due."""
    time.sleep(max(0.0, begun + number / _A_SECOND - time.monotonic()))


def _until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError("it did not come in time")
        time.sleep(0.5)
