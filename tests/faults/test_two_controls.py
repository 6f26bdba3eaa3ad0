"""Only one control acts on a folder: a second one waits until the first is gone, and one of another folder is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from corral import supervisor
from tests.faults.house import House, until
from tests.testbeds.postgresql import PostgresServer

Build = Callable[..., House]
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {token: none}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
"""
"""A kubeconfig that is never used: the server is refused before."""


def test_a_second_control_waits_for_the_lease_and_takes_over(build: Build) -> None:
    house = build()
    house.up()
    log = house.home / "second.log"
    with log.open("wb") as file:
        second = subprocess.Popen(
            [sys.executable, "-m", "corral.cli.main", "serve", "control", "--data", str(house.data)],
            env=house.environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        until(lambda: "another control leads" in log.read_text(), "the second control to wait")
        assert house.until_ended(house.submit("first", "exit 3"))["exit"]["code"] == 3
        assert "leading" not in log.read_text()
        assert second.poll() is None
        house.down()
        until(lambda: '"leading"' in log.read_text(), "the second control to lead")
    finally:
        second.terminate()
        assert second.wait(60) == 0, log.read_text()
    assert "Traceback" not in log.read_text()


@pytest.mark.postgres
def test_a_server_of_another_folder_is_refused_while_tasks_may_run_in_the_first(
    build: Build, postgres: PostgresServer
) -> None:
    database = postgres.create()
    house, other = (build(None, "--database-url", database) for _ in range(2))
    house.up()
    job = house.submit("long", "echo $CORRAL_ATTEMPT; exec sleep 1000")
    until(lambda: house.log("long"), "the task to run")
    house.until_state(job, "running")
    refused = other.try_up()
    assert refused.returncode == 4, refused
    assert f"data folder {house.data}" in refused.stderr and "CORRAL_ENGINE_TAKE_OVER=true" in refused.stderr
    house.down()
    assert "a second server would start them twice" in other.try_up().stderr
    assert supervisor.running(other.data) is None
    house.up()
    assert house.job("long")["state"] == "running"
    assert house.log("long").count("\n") == 1
    assert house.call("POST", f"/api/v3/jobs/{job}/stop").status < 300
    house.until_ended(job)
    house.down()
    assert other.try_up().returncode == 0, "no task may run elsewhere any more"


@pytest.mark.postgres
def test_a_server_of_another_engine_is_refused_while_tasks_may_run_on_this_machine(
    build: Build, postgres: PostgresServer, tmp_path: Path
) -> None:
    database = postgres.create()
    house = build(None, "--database-url", database)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    cluster = ("--engine", "kubernetes", "--kubeconfig", str(kubeconfig), "--advertise", "http://192.0.2.1:1")
    other = build(None, "--database-url", database, *cluster)
    house.up()
    job = house.submit("long", "exec sleep 1000")
    until(lambda: house.job("long")["state"] == "running", "the task to run")
    refused = other.try_up()
    assert refused.returncode == 4, refused
    assert f"data folder {house.data}" in refused.stderr and "CORRAL_ENGINE_TAKE_OVER=true" in refused.stderr
    assert house.call("POST", f"/api/v3/jobs/{job}/stop").status < 300
    house.until_ended(job)
