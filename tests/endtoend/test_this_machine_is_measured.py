"""A real server tells what a job's real processes take: with a token by task, without one nobody's.

What they write for TensorBoard are curves of the job.
"""

from __future__ import annotations

import base64
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.endtoend.platform import Job, Platform, one
from tests.runtime.event_files.encoder import scalars

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]
PROGRAM: Final = """\
import os, time
held = bytearray(b"x" * (64 << 20))
if os.fork() == 0:
    while True: sum(range(100000))
while True: time.sleep(600)
"""
SECONDS: Final = 120.0
"""Seconds after which a wait has failed."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("server"), env={"CORRAL_METRICS_SECONDS": "0.5"})
    made.up()
    yield made
    made.down()


def page(server: Platform, token: str = "") -> Series:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    text = httpx2.get(f"{server.url}/metrics", headers=headers).text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_running_jobs_series_are_told_to_those_with_a_token(server: Platform) -> None:
    command = f"exec python3 -c {shlex.quote(PROGRAM)}"
    job = server.submit({"name": "busy", "framework": "shell", "roles": {"worker": {"command": command}}})
    server.until(job, lambda found: bool(found["state"] == "running"))
    token = server.corral("token", "create", "prometheus", "-o", "name").strip()
    found, mine = _measured(server, token, job["id"])
    assert mine["task_cpu_percent"] > 0 and 64 * 2**20 < mine["task_mem_usage_byte"] < 2**30
    assert mine["corral_task_processes"] >= 2 and mine["task_mem_limit_byte"] > 2**26
    labels = next(dict(each) for name, each in found if name == "task_cpu_percent")
    assert labels["job_name"] == f"{labels['username']}~busy" and labels["virtual_cluster"] == "default"
    assert (labels["role_name"], labels["task_index"]) == ("worker", "0")
    everybody = page(server)
    assert ("corral_agent_tasks", frozenset({("state", "measured")})) in everybody
    told = {value for _, found_labels in everybody for value in dict(found_labels).values()}
    assert not {job["id"], labels["job_name"], labels["username"]} & told
    assert [each for each in everybody if each[0] == "node_memory_MemTotal_bytes"]
    server.corral("stop", job["id"])
    server.ended(job)


def curves(server: Platform, job: Job) -> dict[str, list[float]]:
    """The known values of the job's two curves by tag, once they are there."""
    end = time.monotonic() + SECONDS
    while len(found := server.client.series(["corral_job_scalar"], job=job["id"])["items"]) < 2:
        assert time.monotonic() < end, f"{job['name']} has no curves"
        time.sleep(0.2)
    return {each["labels"]["tag"]: [value for value in each["mean"] if value is not None] for each in found}


def test_event_files_of_a_task_are_curves_of_its_job_while_it_runs_and_after_it(server: Platform) -> None:
    def writes(name: str, loss: float, then: str) -> Job:
        now = time.time()
        written = scalars((now - 31, "loss", 4 * loss), (now - 1, "loss", loss), (now - 1, "rate", 0.125))
        said = base64.b64encode(written).decode()
        command = f"mkdir -p runs/a; echo {said} | base64 -d > runs/a/events.out.tfevents.1.node; {then}"
        return server.submit(one(name, command))

    ended, running = writes("ended", 0.5, "true"), writes("running", 0.25, "sleep 1000")
    server.ended(ended)
    assert curves(server, ended) == {"loss": [2.0, 0.5], "rate": [0.125]}
    assert curves(server, running) == {"loss": [1.0, 0.25], "rate": [0.125]}
    shown = server.corral("metrics", "ended", "--family", "corral_job_scalar")
    assert [line.split()[:3] for line in shown.splitlines()[1:]] == [
        ["scalar{tag=loss}", "0.5", "0.5"],
        ["scalar{tag=rate}", "0.125", "0.125"],
    ]
    names = "ended", "running", "--family", "corral_job_scalar"
    both = server.corral("metrics", *names, "--label", "tag=loss", "--aligned")
    assert [line.split()[:3] for line in both.splitlines()[1:3]] == [
        ["scalar{task=main-0,run=runs/a,tag=loss}", "ended", "0.5"],
        ["running", "0.25", "0.25"],
    ]
    server.clear()


def test_event_files_in_a_folder_that_the_job_names_are_curves_of_it(server: Platform, tmp_path: Path) -> None:
    now, runs = time.time(), tmp_path / "runs"
    said = base64.b64encode(scalars((now - 20, "loss", 0.5), (now - 1, "rate", 0.125))).decode()
    command = f"mkdir -p {runs}/a; echo {said} | base64 -d > {runs}/a/events.out.tfevents.1.node"
    job = server.submit({**one("elsewhere", command), "report": {"tensorboard": [str(runs)]}})
    server.ended(job)
    assert curves(server, job) == {"loss": [0.5], "rate": [0.125]}
    (first, *_) = server.client.series(["corral_job_scalar"], job=job["id"])["items"]
    assert (first["labels"]["task"], first["labels"]["run"]) == ("main-0", f"{runs}/a".strip("/"))
    server.clear()


def _measured(server: Platform, token: str, job: str) -> tuple[Series, dict[str, float]]:
    """The page once it tells that the job computes and holds its memory, and the job's series of it by name."""
    end = time.monotonic() + SECONDS
    while True:
        found = page(server, token)
        mine = {name: value for (name, labels), value in found.items() if ("job_instance_id", job) in labels}
        if mine.get("task_cpu_percent", 0) > 0 and mine.get("task_mem_usage_byte", 0) > 64 * 2**20:
            return found, mine
        assert time.monotonic() < end, mine
        time.sleep(0.5)
