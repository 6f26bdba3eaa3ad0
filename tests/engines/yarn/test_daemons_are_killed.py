"""Hadoop's daemons are killed and started again, and the NameNode enters safe mode, while jobs run."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.model.exits import EXTERNALLY_DELETED, PREEMPTED
from tests.endtoend.platform import Job
from tests.engines.yarn.served import OnYarn, processes, until
from tests.testbeds.hadoop.yarn import Yarn

pytestmark = [pytest.mark.timeout(900)]
LONG = 240.0
"""Seconds that a daemon which was killed may take until it works again; a JVM starts in ten on an idle machine."""


@pytest.fixture(scope="module")
def platform(yarn: Yarn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnYarn]:
    made = OnYarn(tmp_path_factory.mktemp("server"), yarn)
    made.up()
    yield made
    made.down()


@pytest.fixture
def server(platform: OnYarn) -> Iterator[OnYarn]:
    """The same server for each test, with all daemons and without the former test's jobs, also if that test failed."""
    yield platform
    platform.yarn.start()
    platform.clear()


def on(nodes: list[str], command: str, name: str = "survives") -> dict[str, Any]:
    """A job with a task on each of some nodes, which has all devices there."""
    resources = {"cpu": "1", "memory": "128Mi", "devices": 4}
    role = {"replicas": len(nodes), "resources": resources, "command": command}
    return {"name": name, "framework": "shell", "roles": {"main": role}, "nodes": nodes}


def masters_of(app: dict[str, Any]) -> list[int]:
    """The processes of an application's service master."""
    folder = f"/appcache/{app['id']}/".encode()
    main = b"org.apache.hadoop.yarn.service.ServiceMaster"
    found = []
    for pid in processes(lambda words: main in words):
        with contextlib.suppress(OSError):  # one of another application has ended since
            found += [pid] if folder in os.readlink(f"/proc/{pid}/cwd").encode() else []
    return found


def runs_on(server: OnYarn, job: Job, beats: Path) -> None:
    """Every task of a job writes two more lines, and no other process has begun to."""
    before = {each.name: len(each.read_text()) for each in beats.iterdir()}
    until(
        lambda: True if all(len((beats / name).read_text()) > had + 1 for name, had in before.items()) else None, LONG
    )
    assert {each.name for each in beats.iterdir()} == set(before)
    assert server.client.job(job["id"])["state"] == "running"


def test_a_job_runs_on_while_each_daemon_is_killed_and_started_again(server: OnYarn, tmp_path: Path) -> None:
    beats = tmp_path / "beats"
    beats.mkdir()
    script = f"while [ ! -e {tmp_path}/done ]; do printf . >> {beats}/$CORRAL_TASK_INDEX.$$; sleep 0.2; done"
    yarn = server.yarn
    job = server.submit(on(["nm1", "nm2"], script))
    server.until(job, lambda now: now["state"] == "running")
    until(lambda: True if len(list(beats.iterdir())) == 2 else None)
    app = server.app_of(job)
    assert len({task["node"] for task in server.tasks(job).values()}) == 2

    yarn.resource_manager.kill()
    runs_on(server, job, beats)
    yarn.start()
    runs_on(server, job, beats)

    for node in yarn.nodes.values():
        node.kill()
    yarn.start()
    runs_on(server, job, beats)

    for pid in until(lambda: masters_of(app) or None, LONG):
        os.kill(pid, signal.SIGKILL)
    until(lambda: True if masters_of_app(yarn, app) == 2 else None, LONG)
    path = f"/ws/v1/cluster/apps/{app['id']}"
    until(lambda: True if yarn.ask(path)["app"]["runningContainers"] == 3 else None, LONG)
    runs_on(server, job, beats)

    (tmp_path / "done").touch()
    assert server.ended(job)["state"] == "succeeded"
    assert [len(server.attempts(job, task)) for task in server.tasks(job)] == [1, 1]
    server.gone(job)


def masters_of_app(yarn: Yarn, app: dict[str, Any]) -> int:
    """The number of an application's masters so far, of which the last one has registered itself; else 0."""
    path = f"/ws/v1/cluster/apps/{app['id']}"
    if yarn.ask(path)["app"]["state"] != "RUNNING":
        return 0
    return len(yarn.ask(f"{path}/appattempts")["appAttempts"]["appAttempt"])


def test_tasks_of_a_node_that_is_lost_are_tried_again(server: OnYarn) -> None:
    command = "case $CORRAL_ATTEMPT in *.0.main.0.0) echo first; sleep 1000;; esac; echo second"
    job = server.submit(on(["nm1"], command))
    server.printed(job, "main-0", "first")
    server.yarn.kill_node("nm1")
    server.yarn.start()
    assert server.ended(job)["state"] == "succeeded"
    assert [each["exit"]["code"] for each in server.attempts(job, "main-0")] == [-101, 0]
    server.gone(job)


def test_tasks_of_a_node_that_stays_lost_run_elsewhere(server: OnYarn) -> None:
    """Nobody waits for a node that YARN has given up."""
    command = "case $CORRAL_ATTEMPT in *.0.main.0.0) echo first; sleep 1000;; esac; echo second"
    job = server.submit({**on(["nm1"], command), "nodes": ["nm1", "nm2"]})
    server.printed(job, "main-0", "first")
    lost = server.tasks(job)["main-0"]["node"]
    server.yarn.kill_node(lost.partition("/")[2])
    try:
        ended = server.client.wait(job["id"], timeout=2 * LONG)
        assert ended["state"] == "succeeded"
        first, *_, last = server.attempts(job, "main-0")
        assert first["node"] == lost
        assert first["exit"]["code"] in (PREEMPTED, EXTERNALLY_DELETED), (
            "it is moved, or its container is gone: what is told first"
        )
        assert (last["node"], last["exit"]["code"]) == ("yarn/nm2" if lost == "yarn/nm1" else "yarn/nm1", 0)
        server.gone(job)
    finally:
        server.yarn.start()


def test_a_name_node_in_safe_mode_delays_starts_and_loses_nothing(server: OnYarn, tmp_path: Path) -> None:
    hdfs = server.yarn.hdfs
    waits = "echo begun; while [ ! -e {}/{} ]; do sleep 0.1; done; echo ended; exit 3"
    ends = server.submit(on(["nm1"], waits.format(tmp_path, "first"), "ends"))
    stays = server.submit(on(["nm2"], waits.format(tmp_path, "last"), "stays"))
    for job in (ends, stays):
        server.printed(job, "main-0", "begun")
    hdfs.set_safe_mode(True)
    try:
        (tmp_path / "first").touch()
        ended = server.ended(ends)
        assert (ended["state"], ended["exit"]["code"]) == ("failed", 3), "an end is told meanwhile"
        late = server.submit(on(["nm1"], "echo late", "late"))
        told = until(lambda: next((each for each in delays(server, late) if "safe mode" in each), None))
        assert "; wait until it has left safe mode, or end it." in told
        server.kill("control", "front")
        until(lambda: True if server.run("ls").returncode == 0 else None)
        assert server.client.job(late["id"])["state"] == "starting"
        assert server.log(ends, "main-0") == "begun\nended\n"
    finally:
        hdfs.set_safe_mode(False)
    (tmp_path / "last").touch()
    assert server.ended(stays)["exit"]["code"] == 3
    assert server.ended(late)["state"] == "succeeded"
    assert [len(server.attempts(job, "main-0")) for job in (ends, stays, late)] == [1, 1, 1]
    assert server.log(stays, "main-0") == "begun\nended\n"
    server.gone(ends, stays, late)


def delays(server: OnYarn, job: Job) -> list[str]:
    """The messages of a job's events, in which the delay of a start is told."""
    return [each["message"] for each in server.client.job_events(job["id"])["items"]]
