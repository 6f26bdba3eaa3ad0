"""Front and control are forked from one process that has loaded what both need, and share nothing else."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corral import app, forking, supervisor
from tests.faults.house import ROOT, House, until

Build = Callable[..., House]
_FEW = 7
"""Modules that the list of shared ones may name too many or too few, one percent: it need not change with every import."""
_SERVING = """
import encodings.idna, uvloop
import uvicorn.protocols.http.httptools_impl, uvicorn.protocols.websockets.websockets_sansio_impl
"""
_CHILD = """
import fcntl, json, os, random, signal, sys, time
from corral.forking import *
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
"""


def forks(script: str, output: Path) -> str:
    """Run a script in a fresh interpreter, whose forked children write to `output`; returns what they wrote."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", _CHILD + script, str(output)], env=environment, check=True, timeout=60)
    return output.read_text()


def test_garbage_of_the_parent_closes_nothing_in_the_child(tmp_path: Path) -> None:
    script = """
import gc
gc.disable()
held = [open("/dev/null")]
number = held[0].fileno()
held.append(held)
del held
def run():
    mine = os.open("/dev/zero", os.O_RDONLY)
    os.dup2(mine, number)
    gc.collect()
    print(os.readlink(f"/proc/self/fd/{number}"))
    return 0
fork(run, output=out, errors=out).wait()
"""
    assert forks(script, tmp_path / "out") == "/dev/zero\n"


def test_a_forked_child_is_like_a_started_program(tmp_path: Path) -> None:
    script = """
signal.signal(signal.SIGTERM, lambda *_: None)
reading, writing = os.pipe()
held = open(sys.argv[1] + ".other", "w")
signal.set_wakeup_fd(os.pipe2(os.O_NONBLOCK)[1])
def run():
    handles = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    print(json.dumps({
        "handles": [each for each in handles if os.path.exists(f"/proc/self/fd/{each}")],
        "passed": writing,
        "input": os.read(0, 1).decode(),
        "leads": os.getsid(0) == os.getpid(),
        "environment": dict(os.environ),
        "terminates": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
        "wakeup": signal.set_wakeup_fd(-1),
        "blocked": [int(each) for each in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
    }))
    return 7
child = fork(run, output=out, errors=2, passed=[writing], environment={"ONLY": "this"})
assert child.wait() == 7 and child.poll() == 7
"""
    said: dict[str, Any] = json.loads(forks(script, tmp_path / "said"))
    assert said.pop("handles") == [0, 1, 2, said.pop("passed")]
    assert said == {
        "input": "",
        "leads": True,
        "environment": {"ONLY": "this"},
        "terminates": True,
        "wakeup": -1,
        "blocked": [],
    }


def test_a_child_that_fails_reports_it_and_returns_into_no_frame_of_its_parent(tmp_path: Path) -> None:
    script = """
def run():
    raise ValueError("no such thing")
try:
    child = fork(run, output=out, errors=out)
    assert child.wait() == 1
finally:
    os.write(out, b"finally\\n")
"""
    said = forks(script, tmp_path / "said").splitlines()
    assert said[0].startswith("Traceback") and said[-2:] == ["ValueError: no such thing", "finally"]
    assert said.count("finally") == 1


def test_a_signal_at_the_moment_of_the_fork_ends_the_child_and_not_a_handler_of_its_parent(tmp_path: Path) -> None:
    script = """
signal.signal(signal.SIGTERM, lambda *_: os.write(out, b"handled"))
for _ in range(30):
    child = fork(lambda: time.sleep(60) or 0, output=out, errors=2)
    child.terminate()
    assert child.wait() == -signal.SIGTERM
"""
    assert forks(script, tmp_path / "said") == ""


def test_a_lock_of_the_parent_ends_with_it_and_not_with_its_child(tmp_path: Path) -> None:
    script = """
def lock():
    handle = os.open(sys.argv[1] + ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle
held = lock()
reading, writing = os.pipe()
ready, telling = os.pipe()
def run():
    os.write(telling, b".")
    return len(os.read(reading, 1))
child = fork(run, output=out, errors=2, passed=[reading, telling])
os.read(ready, 1)
os.close(held)
lock()
child.kill()
"""
    forks(script, tmp_path / "said")


def test_two_children_draw_different_random_numbers(tmp_path: Path) -> None:
    script = """
random.random()
for _ in range(2):
    fork(lambda: print(random.random()) or 0, output=out, errors=2).wait()
"""
    assert len(set(forks(script, tmp_path / "said").split())) == 2


def test_a_wait_ends_at_its_limit_and_at_a_kill(tmp_path: Path) -> None:
    script = """
import subprocess
child = fork(lambda: time.sleep(60) or 0, output=out, errors=2)
assert child.poll() is None
try:
    child.wait(0.01)
except subprocess.TimeoutExpired:
    os.write(out, b"still runs")
child.kill()
assert child.wait(60) == -signal.SIGKILL
child.terminate()
"""
    assert forks(script, tmp_path / "said") == "still runs"


def test_a_process_with_another_thread_is_not_forked(tmp_path: Path) -> None:
    script = """
import threading
alone = has_one_thread()
end = threading.Event()
threading.Thread(target=end.wait).start()
os.write(out, json.dumps([alone, has_one_thread()]).encode())
end.set()
"""
    assert json.loads(forks(script, tmp_path / "said")) == [True, False]


def test_a_title_replaces_name_and_command_line(tmp_path: Path) -> None:
    script = """
set_title("corral", "control")
os.write(out, open("/proc/self/comm", "rb").read() + open("/proc/self/cmdline", "rb").read().rstrip(b"\\0"))
"""
    assert forks(script, tmp_path / "said") == "corral-control\ncorral\0control"


_TENANTS = """
from corral.kernel.plug_ins import plug_ins
for group in ("corral.service", "corral.routes"):
    for point in plug_ins(group).values():
        point.load()
"""
"""The front composes the tenants, which it finds by entry point."""


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `code`."""
    code += "\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def imports_of(function: str) -> str:
    """The import statements of a function of corral/app.py, as code."""
    tree = ast.parse(Path(app.__file__).read_text())
    (found,) = (node for node in tree.body if isinstance(node, ast.AsyncFunctionDef) and node.name == function)
    return "\n".join(ast.unparse(node) for node in ast.walk(found) if isinstance(node, ast.ImportFrom))


def test_what_is_loaded_before_the_fork_is_what_front_and_control_share() -> None:
    """A module of one alone would cost the other its memory; a missing one is loaded twice."""
    front = loaded(f"import corral.app\n{imports_of('_front')}{_SERVING}{_TENANTS}")
    control = loaded(f"import corral.app\n{imports_of('_control')}{_SERVING}")
    before = loaded("from corral import forking\nforking.load_shared()")
    shared = front & control
    assert len(shared) > 700
    assert len(shared - before) <= _FEW, sorted(shared - before)
    assert len(before - shared) <= _FEW, sorted(before - shared)


def test_control_loads_the_planner_of_hived_only_where_a_policy_names_it() -> None:
    asked = "\nfrom corral.scheduler import find_planner\nassert find_planner('hived').__name__ == 'HivedPlanner'"
    before = loaded(imports_of("_control"))
    after = loaded(imports_of("_control") + asked)
    assert {each for each in after - before if each.startswith("corral.")} == {
        each for each in after if each.startswith("corral.scheduler.planners.hived")
    }


def stack_of(pid: int) -> int:
    """The address of a process' stack, which is random for each program that is started, and inherited by a fork."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[25])


def test_front_and_control_are_forks_at_first_and_a_restarted_one_is_a_new_interpreter(build: Build) -> None:
    house = build()
    house.fresh = True
    house.up()
    pids = house.processes()
    assert stack_of(pids["front"]) == stack_of(pids["control"]) != stack_of(pids["supervisor"])
    killed = house.kill("front")
    now = until(lambda: found if killed != (found := house.processes()).get("front", killed) else None, "a new front")
    assert stack_of(now["front"]) != stack_of(pids["control"])
    assert now["control"] == pids["control"]


def test_a_child_of_the_server_has_only_its_own_descriptors(build: Build) -> None:
    house = build()
    house.fresh = True
    house.up()
    pids = house.processes()
    locks = {name: [each for each in open_files(pid) if each.endswith("supervisor.lock")] for name, pid in pids.items()}
    assert [name for name, found in locks.items() if found] == ["supervisor"]
    pipes = {name: {each for each in open_files(pid) if each.startswith("pipe:")} for name, pid in pids.items()}
    assert not pipes["front"] & pipes["control"]


def open_files(pid: int) -> list[str]:
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile: control reads files of /proc for its metrics
            found.append(os.readlink(each))
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_start_ends_the_whole_server(build: Build, number: signal.Signals) -> None:
    house = build()
    command = [sys.executable, "-m", "corral.cli.main", "up", "--data", str(house.data), "--port", "0"]
    with subprocess.Popen(command, env=house.environment, stdout=subprocess.PIPE, start_new_session=True) as process:
        until(lambda: supervisor.running(house.data), "the supervisor's record")
        process.send_signal(number)
        assert process.wait(120) == 0
    assert supervisor.running(house.data) is None
    assert not (house.data / "run" / "supervisor.json").exists()


def test_modules_that_cannot_be_loaded_leave_no_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forking, "SHARED", ("corral.no_such_module",))
    with pytest.raises(ModuleNotFoundError):
        forking.load_shared()
