"""Time a gang of four on YARN until its last task runs, beside the same service posted by hand, and a retry in a slot.

Both kinds of containers write the time at which their own command begins. HDFS, YARN with two NodeManagers, the server
and the client share this machine's processors.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from bench.harness import running_server
from bench.stats import median
from tests.reserved import free_port
from tests.testbeds.hadoop.hdfs import Hdfs
from tests.testbeds.hadoop.yarn import ATTRIBUTE, Yarn

TASKS, ROUNDS = 4, 5
PATIENCE_SECONDS = 120.0
NODES = ("nm1", "nm2")
SETTINGS = {"CORRAL_LOG_LEVEL": "warning", "CORRAL_RETRY_FIRST": "0", "CORRAL_TRANSIENT_FLOOR": "0"}
"""No back-off: what is timed is the way from an end to the next start."""


def measure() -> dict[str, float]:
    """Seconds from the submission to the last first instruction, by hand as well, and of a retry."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="corral-bench-yarn-") as folder, Hdfs() as hdfs, Yarn(hdfs) as yarn:
        place = Path(folder)
        cluster = ("--yarn-resource-managers", yarn.url, "--yarn-name-nodes", hdfs.web.replace("webhdfs", "http"))
        where = ("--port", str(port), "--advertise", f"http://127.0.0.1:{port}")
        with running_server("--engine", "yarn", *cluster, *where, settings=SETTINGS, patience=60) as server:
            with server.client() as client:
                ours, bare = [], []
                for at in range(ROUNDS):
                    bare.append(_by_hand(yarn, place / f"bare-{at}", f"bench-{at}"))
                    ours.append(_by_corral(client, place / f"ours-{at}", yarn))
                retries = _retries(client, place / "retries")
    return {
        "p50": median(ours),
        "by hand": median(bare),
        "more": median(ours) - median(bare),
        "worst": max(ours),
        "retry": median(retries),
    }


def _by_hand(yarn: Yarn, place: Path, name: str) -> float:
    """Post a service of four pinned containers; seconds until the last command has begun."""
    place.mkdir()
    components = [
        {
            "name": f"on-{node}",
            "number_of_containers": TASKS // len(NODES),
            "restart_policy": "ALWAYS",
            "launch_command": f"touch {place}/{node}-`basename $PWD`; exec sleep 1000",
            "resource": {"cpus": 1, "memory": "128", "additional": {"yarn.io/gpu": {"value": 1, "unit": ""}}},
            "placement_policy": {
                "constraints": [
                    {"name": "n", "type": "AFFINITY", "scope": "NODE", "node_attributes": {ATTRIBUTE: [node]}}
                ]
            },
        }
        for node in NODES
    ]
    body = {"name": name, "version": "1", "queue": "default", "components": components}
    begun = time.time()
    yarn.ask("/app/v1/services", method="POST", body=body)
    last = max(_begun(place, TASKS))
    yarn.ask(f"/app/v1/services/{name}", method="DELETE")
    _until(lambda: not _apps(yarn))
    return last - begun


def _by_corral(client: httpx2.Client, place: Path, yarn: Yarn) -> float:
    """Submit a gang of four; seconds until the last command has begun."""
    place.mkdir()
    begun = time.time()
    job = _submit(client, f"touch {place}/$CORRAL_RANK; exec sleep 1000", TASKS)
    last = max(_begun(place, TASKS))
    client.post(f"/api/v3/jobs/{job}/stop").raise_for_status()
    _ended(client, job)
    _until(lambda: not _apps(yarn))
    return last - begun


def _retries(client: httpx2.Client, place: Path) -> list[float]:
    """The seconds from each failure of one task to its next command, in the slot that it has."""
    place.mkdir()
    begins, ends = place / "begins", place / "ends"
    last = f"[ `wc -l <{begins}` -gt {ROUNDS} ]"
    command = f"date +%s.%N >>{begins}; {last}; code=$?; date +%s.%N >>{ends}; exit $code"
    job = _submit(client, command, 1, retry={"maxRetries": ROUNDS})
    _ended(client, job)
    ended, begun = (list(map(float, file.read_text().split())) for file in (ends, begins))
    return [after - before for before, after in zip(ended, begun[1:], strict=False)]


def _submit(client: httpx2.Client, command: str, tasks: int, **role: Any) -> str:
    resources = {"cpu": 1, "memory": "128Mi", "devices": 1}
    roles = {"main": {"replicas": tasks, "resources": resources, "command": command, **role}}
    answer = client.post("/api/v3/jobs", json={"name": f"b{time.time_ns()}", "framework": "shell", "roles": roles})
    answer.raise_for_status()
    return str(answer.json()["id"])


def _ended(client: httpx2.Client, job: str) -> None:
    live = {"waiting", "starting", "running", "stopping"}
    _until(lambda: client.get(f"/api/v3/jobs/{job}").raise_for_status().json()["state"] not in live)


def _begun(place: Path, count: int) -> list[float]:
    """When each command began, once all have."""
    _until(lambda: len(list(place.iterdir())) >= count)
    return [file.stat().st_mtime for file in place.iterdir()]


def _apps(yarn: Yarn) -> list[str]:
    apps = (yarn.ask("/ws/v1/cluster/apps")["apps"] or {}).get("app", [])
    return [each["id"] for each in apps if each["finalStatus"] == "UNDEFINED"]


def _until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError("it did not come in time")
        time.sleep(0.02)
