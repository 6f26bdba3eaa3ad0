"""Kill the server's processes while one-task jobs run on YARN, and check that no job is lost or run twice.

Each job has a service and a device of its own, locks them, prints numbered lines and ends with a known exit code (the
script of `bench/crash.py`). The kills (SIGKILL of supervisor, front, control or all of them) are spread over the run:
each comes at a random moment after a further part of the jobs has ended. Afterwards the server must end the services of
all jobs.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bench.crash import Tally, Victim, count, task_script
from corral import supervisor
from tests.reserved import free_port
from tests.testbeds.hadoop.hdfs import Hdfs
from tests.testbeds.hadoop.yarn import Yarn

JOBS, KILLS = 100, 20
_PATIENCE_SECONDS: Final = 3600.0
_ENDS_SECONDS: Final = 180.0
_LIVE: Final = "state=waiting&state=starting&state=running&state=stopping"
_SETTINGS: Final = {"CORRAL_YARN_START_SECONDS": "600", "CORRAL_SUBMITS_PER_HOUR": "0", "CORRAL_TASKS_PER_USER": "0"}


def run(folder: Path, yarn: Yarn, jobs: int, kills: int, seed: int) -> Tally:
    """Run `jobs` jobs and kill `kills` times meanwhile, then count.

    When all jobs have ended before the last kill, another one is submitted for it.
    """
    draw, begun = random.Random(seed), time.monotonic()
    port = free_port()
    cluster = ["--yarn-resource-managers", yarn.url, "--yarn-name-nodes", yarn.hdfs.web.replace("webhdfs", "http")]
    where = ["--port", str(port), "--advertise", f"http://127.0.0.1:{port}"]
    victim = Victim(folder, "--engine", "yarn", *cluster, *where, settings=_SETTINGS)
    tally, expected = Tally(), dict[str, int]()
    try:
        victim.up()
        while (left := _live(victim)) or tally.kills < kills:
            if len(expected) < jobs or not left:
                code = draw.choice((0, 0, 0, 3, 7))
                expected[_submit(victim, len(expected), code)] = code
                continue
            due = kills * (len(expected) - left + 1) // jobs
            if tally.kills < min(due, kills):
                time.sleep(draw.random())
                victim.kill(draw.choice(("supervisor", "front", "control", "all")))
                tally.kills += 1
                time.sleep(draw.random() * 0.1)
                victim.up()
            elif time.monotonic() > begun + _PATIENCE_SECONDS:
                break
            else:
                time.sleep(0.5)
        count(victim, expected, tally)
        tally.left_behind += _services_left(yarn, expected)
    finally:
        supervisor.stop(victim.data)
    tally.jobs, tally.seconds = len(expected), time.monotonic() - begun
    return tally


def measure() -> dict[str, float]:
    """A hundred jobs and twenty kills; `lost` includes wrong exit codes and incomplete logs."""
    with tempfile.TemporaryDirectory(prefix="corral-yarn-crash-") as folder, Hdfs() as hdfs, Yarn(hdfs) as yarn:
        tally = run(Path(folder), yarn, JOBS, KILLS, seed=1)
    seen = {"lost": tally.lost, "code": tally.wrong_code, "log": tally.wrong_log}
    seen |= {"doubled": tally.doubled, "device": tally.devices_doubled, "left": tally.left_behind}
    for kind, found in seen.items():
        for each in found:
            print(f"{kind}: {each}", file=sys.stderr)
    return {
        "lost": float(len(tally.lost) + len(tally.wrong_code) + len(tally.wrong_log)),
        "doubled": float(len(tally.doubled)),
        "devices": float(len(tally.devices_doubled)),
        "left-behind": float(len(tally.left_behind)),
        "kills": float(tally.kills),
        "devices taken": float(tally.devices_taken),
        "campaign": tally.seconds,
    }


def _submit(victim: Victim, number: int, code: int) -> str:
    role = {
        "replicas": 1,
        "resources": {"cpu": "1", "memory": "64Mi", "devices": 1},
        "command": ["sh", "-c", task_script("0.1", code)],
        "env": {"CRASH_FOLDER": str(victim.shared)},
    }
    document = {"name": f"crash-{number}", "framework": "shell", "roles": {"worker": role}}
    return str(victim.insist("POST", "/api/v3/jobs", document, key=f"crash-{number}")["id"])


def _services_left(yarn: Yarn, jobs: Iterable[str]) -> list[str]:
    """The names of the services of ended jobs that the server has not ended though it had time to."""
    mine, end = {job.lower() for job in jobs}, time.monotonic() + _ENDS_SECONDS
    while True:
        told = (yarn.ask("/ws/v1/cluster/apps", states="NEW,SUBMITTED,ACCEPTED,RUNNING")["apps"] or {}).get("app", [])
        left = [str(each["name"]) for each in told if any(f"-{job}-" in each["name"] for job in mine)]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.5)


def _live(victim: Victim) -> int:
    """The number of jobs that have not ended."""
    return len(victim.insist("GET", f"/api/v3/jobs?{_LIVE}&limit=500")["items"])
