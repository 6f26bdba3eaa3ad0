"""The program that takes stacks in a task: which processes it looks at, and what it says when one cannot be read."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.runtime import task_profile

PROGRAM = Path(task_profile.__file__).read_bytes()
READ = "import sys;i=sys.stdin.buffer;exec(compile(i.read(int(i.readline())),'profile','exec'))"
PYSPY = Path(sys.executable).with_name("py-spy")
STANDS = "import sys\ndef stand_here():\n    print('ready', flush=True)\n    sys.stdin.read()\nstand_here()\n"


@pytest.fixture
def attempt(tmp_path: Path) -> str:
    """The marker of a task of this test's own."""
    return f"profiled-{tmp_path.name}"


@contextlib.contextmanager
def process(attempt: str, code: str = STANDS, *, uid: int = -1) -> Iterator[subprocess.Popen[str]]:
    """A Python process of the task, once it is ready."""
    env = {"CORRAL_ATTEMPT": attempt, "PATH": os.environ["PATH"]}
    user: dict[str, Any] = {"user": uid, "group": uid, "extra_groups": []} if uid >= 0 else {}
    python = "/usr/bin/python3" if uid >= 0 else sys.executable
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([python, "-I", "-S", "-c", code], env=env, cwd="/", **pipes, **user) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "ready\n"
            yield running
        finally:
            running.kill()


def profiled(
    attempt: str, path: str, *, py_spy: bytes | None = None, uid: int = -1, **more: Any
) -> list[dict[str, Any]]:
    """The answers of the program, run as in a task with `path` as its PATH; `py_spy` is sent if it asks for it."""
    request = {"what": "stacks", "seconds": 0, "rate": 50, "processes": 8, "bytes": 100_000, **more}
    given = b"%d\n" % len(PROGRAM) + PROGRAM + json.dumps(request).encode() + b"\n"
    given += b"" if py_spy is None else b"%d\n" % len(py_spy) + py_spy
    env = {"CORRAL_ATTEMPT": attempt, "PATH": path}
    user: dict[str, Any] = {"user": uid, "group": uid, "extra_groups": []} if uid >= 0 else {}
    python = "/usr/bin/python3" if uid >= 0 else sys.executable
    words = [python, "-I", "-S", "-c", READ, "corral-profile"]
    done = subprocess.run(words, env=env, cwd="/", input=given, capture_output=True, timeout=120, **user)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_stacks_of_the_tasks_own_processes_are_told_and_of_no_others(attempt: str) -> None:
    with process(attempt) as one, process(f"{attempt}-other"):
        found, end = profiled(attempt, str(PYSPY.parent))
    assert (found["process"], end) == (one.pid, {"done": True, "left_out": 0})
    (thread,) = json.loads(found["text"])
    assert "stand_here" in [frame["name"] for frame in thread["frames"]]


def test_py_spy_is_asked_for_where_the_task_has_none_and_run_from_memory(attempt: str) -> None:
    with process(attempt) as one:
        asked, found, _ = profiled(attempt, "/nowhere", py_spy=PYSPY.read_bytes())
    assert (asked["need"], asked["system"], found["process"]) == ("py-spy", "Linux", one.pid)
    assert "stand_here" in found["text"]


def test_without_py_spy_nothing_is_told(attempt: str) -> None:
    with process(attempt):
        asked, end = profiled(attempt, "/nowhere", py_spy=b"")
    assert (asked["need"], end["done"]) == ("py-spy", True)


def test_samples_of_a_process_name_the_function_that_is_busy(attempt: str) -> None:
    code = "print('ready', flush=True)\ndef spin():\n    while True: pass\nspin()\n"
    with process(attempt, code):
        found, _ = profiled(attempt, str(PYSPY.parent), what="python", seconds=1)
    assert "spin (<string>:" in found["text"]


def test_more_processes_than_asked_for_are_counted_only(attempt: str) -> None:
    with process(attempt), process(attempt), process(attempt):
        *found, end = profiled(attempt, str(PYSPY.parent), processes=1)
    assert (len(found), end["left_out"]) == (1, 2)


def test_a_long_profile_is_cut_at_a_line_and_says_so(attempt: str, tmp_path: Path) -> None:
    with process(attempt):
        found, _ = profiled(attempt, fake(tmp_path, "yes 'main;f 1' | head -1000"), bytes=100)
    assert (found["cut"], found["text"]) == (True, "main;f 1\n" * 11)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'Error: Permission denied (os error 13)' >&2; exit 1", "no ptrace"),
        ("echo 'Error: Operation not permitted' >&2; exit 1", "SYS_PTRACE"),
        ("echo 'Error: Failed to find a python interpreter' >&2; exit 1", "Failed to find a python interpreter."),
    ],
)
def test_a_process_that_cannot_be_read_is_told_in_one_sentence(
    attempt: str, tmp_path: Path, script: str, told: str
) -> None:
    with process(attempt):
        found, _ = profiled(attempt, fake(tmp_path, script), what="python", seconds=1)
    assert told in found["problem"]
    assert "text" not in found


def test_a_rank_that_dies_meanwhile_is_told(attempt: str, tmp_path: Path) -> None:
    with process(attempt) as one:
        script = (
            f"kill -9 {one.pid}; while kill -0 {one.pid} && ! grep -q ') Z' /proc/{one.pid}/stat; do :; done; exit 1"
        )
        found, _ = profiled(attempt, fake(tmp_path, script), what="python", seconds=1)
    assert found["problem"] == f"process {one.pid} ended meanwhile."


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("python3", path="/usr/bin"), reason="needs root")
def test_a_process_of_another_user_is_told(attempt: str) -> None:
    stands = ["/usr/bin/python3", "-I", "-S", "-c", STANDS]
    code = (
        "import os\nchild = os.fork()\n"
        "if child: os.setgroups([]); os.setgid(12345); os.setuid(12345)\n"
        "else: os.setgroups([]); os.setgid(12346); os.setuid(12346); os.dup2(2, 1)\n"
        f"os.execv({stands[0]!r}, {stands!r})\n"
    )
    with process(attempt, code) as parent:
        (child,) = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        *found, _ = profiled(attempt, str(PYSPY.parent), uid=12345, py_spy=PYSPY.read_bytes())
    problems = {each["process"]: each["problem"] for each in found if "problem" in each}
    assert problems == {int(child): f"process {child} belongs to another user."}


def fake(folder: Path, script: str) -> str:
    """A PATH with a py-spy that does what a shell script says."""
    program = folder / "bin" / "py-spy"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return f"{program.parent}:/usr/bin:/bin"
