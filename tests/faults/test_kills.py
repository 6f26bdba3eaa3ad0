"""Killed processes are restarted or reported, and tasks are not affected."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corral import supervisor
from corral.engines.local.live_attempt import GROUP_KILLED, SHIM_KILLED
from tests.faults.house import ROOT, House, shell_job, until

Build = Callable[..., House]
LINES = 200
_COUNTING = f"i=0; while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); sleep 0.02; done"
_COUNTING += "; until [ -e end ]; do sleep 0.05; done; exit 9"


@pytest.mark.parametrize("name", ["front", "control"])
def test_a_killed_half_is_restarted_and_its_supervisor_is_the_same(build: Build, name: str) -> None:
    house = build()
    house.up()
    ref = house.submit("counting", _COUNTING)
    house.until_state(ref, "running")
    before = house.processes()
    killed = house.kill(name)
    now = until(lambda: found if killed != (found := house.processes()).get(name, killed) else None, f"a new {name}")
    assert {**now, name: killed} == before
    shown = house.corral("ls", "-o", "json")
    assert shown.returncode == 0, shown.stderr
    assert [job["id"] for job in json.loads(shown.stdout)] == [ref]
    (_folder(house, ref) / "work" / "end").touch()
    assert house.until_ended(ref)["exit"]["code"] == 9
    assert house.log(ref).splitlines() == [f"line {number}" for number in range(LINES)]


def test_a_killed_supervisor_takes_both_halves_with_it_and_the_next_up_finds_all(build: Build) -> None:
    house = build()
    house.up()
    ref = house.submit("counting", _COUNTING)
    house.until_state(ref, "running")
    before = house.processes()
    house.kill("supervisor")
    until(lambda: not any(_alive(pid) for pid in before.values()), "the end of both halves")
    assert "corral up" in house.refuses(5, "ls")
    house.up()
    with house.client() as client:
        follower = iter(client.log(ref, "worker", 0, follow=True))
        next(follower)
        house.kill("supervisor")
        house.up("--port", house.url.rpartition(":")[2])  # front releases the address after closing its connections
        follower.close()
    (_folder(house, ref) / "work" / "end").touch()
    assert house.until_ended(ref)["exit"]["code"] == 9
    assert house.log(ref).splitlines() == [f"line {number}" for number in range(LINES)]


def test_a_task_survives_down_and_is_adopted_with_its_true_code_and_whole_log(build: Build) -> None:
    house = build()
    house.up()
    quick = house.submit(
        "ends-while-nobody-looks", "echo one; until [ -e end ]; do sleep 0.05; done; echo two; exit 11"
    )
    slow = house.submit("runs-through", "while [ ! -e go ]; do sleep 0.05; done; echo late; exit 12")
    for ref in (quick, slow):
        house.until_state(ref, "running")
    pids = {ref: _identity(house, ref) for ref in (quick, slow)}
    house.down()
    assert _alive(pids[quick]) and _alive(pids[slow])
    (_folder(house, quick) / "work" / "end").touch()
    until(lambda: not _alive(pids[quick]), "the end of the quick task")
    house.up()
    assert house.until_ended(quick)["exit"]["code"] == 11
    assert house.log(quick) == "one\ntwo\n"
    assert house.job(slow)["state"] == "running"
    assert _identity(house, slow) == pids[slow]
    (_folder(house, slow) / "work" / "go").touch()
    assert house.until_ended(slow)["exit"]["code"] == 12
    assert house.log(slow) == "late\n"
    assert len(house.attempts(slow)) == 1


@pytest.mark.parametrize(
    ("whom", "code", "says"),
    [("task", 137, ""), ("shim", -101, SHIM_KILLED), ("group", -101, GROUP_KILLED)],
)
def test_a_killed_task_shim_and_group_are_told_apart(shared_house: House, whom: str, code: int, says: str) -> None:
    once = {"retryPolicy": {"fancy": False, "maxRetries": 0}}
    document = shell_job(f"killed-{whom}", "sleep 300", **once) | once
    answer = shared_house.call("POST", "/api/v3/jobs", document)
    assert answer.status == 201, answer
    ref = answer.body["id"]
    shared_house.until_state(ref, "running")
    shim = _identity(shared_house, ref)
    task = until(lambda: _child(shim), "the task's own process")
    if whom == "group":
        os.killpg(shim, signal.SIGKILL)
    else:
        os.kill(task if whom == "task" else shim, signal.SIGKILL)
    ended = shared_house.until_ended(ref)
    assert ended["exit"]["code"] == code
    (attempt,) = shared_house.attempts(ref)
    assert attempt["exit"]["code"] == code
    assert says in json.dumps(attempt, ensure_ascii=False), attempt
    others = {SHIM_KILLED, GROUP_KILLED} - {says}
    assert not any(other in json.dumps(attempt, ensure_ascii=False) for other in others)
    until(lambda: not _alive(task), "the end of the task itself")


def _folder(house: House, ref: str) -> Path:
    """The engine's folder of a job's only attempt."""
    return until(
        lambda: next(iter((house.data / "engine" / "attempts").glob(f"{ref}*")), None), f"the attempt's folder of {ref}"
    )


def _identity(house: House, ref: str) -> int:
    """The pid of the shim of a job's only task."""
    words = until(lambda: (_folder(house, ref) / "pid").read_text().split(), "the shim's record")
    return int(words[1])


def _child(pid: int) -> int | None:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else None


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_kill_between_an_eviction_and_the_end_of_its_tasks_loses_nothing(build: Build) -> None:
    """Whether or not the stop reached the engine, the gang ends once, its retry is not counted, and it has one receipt."""
    house = build(None, "--cluster", str(ROOT / "examples" / "cluster.yaml"))
    house.up()
    slow = "trap 'while [ ! -e go ]; do sleep 0.05; done; exit 0' TERM; while :; do sleep 0.05; done"
    ref = house.submit("yields", slow)
    house.until_state(ref, "running")
    (node,) = {place["node"] for place in house.job(ref)["placement"]}
    assert house.call("POST", f"/api/v3/nodes/{node}/drain", {"graceSeconds": 300}).status == 202
    until(lambda: house.call("GET", f"/api/v3/jobs/{ref}/receipts").body["items"], "the receipt")
    killed = house.kill("control")
    until(lambda: house.processes().get("control", killed) != killed, "a new control")
    (_folder(house, ref) / "work" / "go").touch()
    back = until(
        lambda: job if (job := house.job(ref))["attempt"] == 1 and job["state"] == "running" else None, "a return"
    )
    assert {place["node"] for place in back["placement"]} != {node}
    (receipt,) = until(lambda: [each for each in house.job(ref)["receipts"] if each["state"] == "returned"], "its end")
    assert receipt["rule"] == "drain"
    first, second = sorted(house.attempts(ref), key=lambda attempt: attempt["jobAttempt"])
    assert first["exit"]["code"] == -1003 and second["exit"] is None
    for folder in (house.data / "engine" / "attempts").glob(f"{ref}*"):
        (folder / "work" / "go").touch()


@pytest.mark.parametrize("what", ["Popen", "pidfd_open"])
def test_a_machine_that_starts_no_process_for_a_moment_is_asked_again_and_nothing_runs_twice(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    made = supervisor.Supervisor({"data_folder": str(tmp_path), "environment": {}})
    made.url = "http://127.0.0.1:1"
    child, popen = made.children[0], subprocess.Popen
    begun: list[subprocess.Popen[bytes]] = []

    def started(_: list[str], **options: Any) -> subprocess.Popen[bytes]:
        begun.append(popen(["sleep", "1000"], **options))
        return begun[-1]

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    with monkeypatch.context() as full:
        full.setattr(subprocess, "Popen", started if what == "pidfd_open" else refused)
        if what == "pidfd_open":
            full.setattr(os, "pidfd_open", refused)
        made._start_again(child)
    assert child.process is None and child.restart_at is not None
    assert all(process.returncode == -signal.SIGKILL for process in begun)
    assert len(begun) == (what == "pidfd_open")
