"""The program that takes stacks in a task: which processes it looks at, and what it says when one cannot be read."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.profiles.memory import read_memory
from corral.profiles.sampled_calls import read_calls
from corral.profiles.system import read_system
from corral.runtime.profile_start import program
from corral.runtime.task_processes import lives, parent
from corral.runtime.task_system import named_devices

pytestmark = pytest.mark.processes
PROGRAM = program()
READ = "import sys;i=sys.stdin.buffer;exec(compile(i.read(int(i.readline())),'profile','exec'))"
PYSPY = Path(sys.executable).with_name("py-spy")
STANDS = "import sys\ndef stand_here():\n    print('ready', flush=True)\n    sys.stdin.read()\nstand_here()\n"


@pytest.fixture
def attempt(tmp_path: Path) -> str:
    """The marker of a task of this test's own."""
    return f"profiled-{tmp_path.name}"


@contextlib.contextmanager
def process(attempt: str, code: str = STANDS, *, uid: int = -1, **more: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process of the task, once it is ready; `more` is in its environment."""
    env = {"CORRAL_ATTEMPT": attempt, "PATH": os.environ["PATH"], **more}
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


GROWS = """\
import time
kept = []
def load_dataset():
    kept.append(bytearray(1024 * 1024))
    for at in range(0, len(kept[-1]), 4096): kept[-1][at] = 1
    time.sleep(0.01)
    if len(kept) > 200: kept.clear()
print('ready', flush=True)
while True: load_dataset()
"""


def test_memory_that_grows_is_told_with_the_stacks_that_were_seen_meanwhile(attempt: str) -> None:
    with process(attempt, GROWS) as one:
        *pieces, answer, end = profiled(attempt, str(PYSPY.parent), what="memory", seconds=1, bytes=1_000_000)
    assert (answer["process"], end) == (one.pid, {"done": True, "left_out": 0})
    trace = gzip.decompress(b"".join(base64.b64decode(each["trace"]) for each in pieces)).decode()
    told = read_memory("worker-0", answer["text"], read_calls([trace]))
    assert told.grown > 1024
    assert told.unseen == ""
    most = max(told.stacks, key=lambda each: each.samples)
    assert any(frame.startswith("load_dataset (") for frame in most.frames)
    assert {"anonymous", "heap"} & {each.kind for each in told.holders}


def test_memory_is_told_without_functions_where_there_is_no_py_spy_or_it_fails(attempt: str, tmp_path: Path) -> None:
    with process(attempt):
        asked, answer, _ = profiled(attempt, "/nowhere", py_spy=b"", what="memory", seconds=1)
        failed, _ = profiled(attempt, fake(tmp_path, "echo 'Error: not permitted'; exit 1"), what="memory", seconds=1)
    assert asked["need"] == "py-spy"
    assert read_memory("worker-0", answer["text"], ()).used > 1024
    assert "no ptrace" in read_memory("worker-0", failed["text"], ()).unseen


def test_what_a_task_gets_of_its_machine_is_told_as_counters_of_its_own_processes(attempt: str) -> None:
    code = "print('ready', flush=True)\nwhile True: pass\n"
    with process(attempt, code):
        answer, end = profiled(attempt, "/nowhere", what="system", seconds=1)
    assert (answer["process"], end) == (0, {"done": True, "left_out": 0})
    told = read_system("worker-0", answer["text"])
    assert told.wanted > 0 and told.busiest > 0
    assert told.wanted < 2  # of one thread, whatever else runs on the machine
    assert 1 <= told.processors <= (os.cpu_count() or 1)
    assert told.resident > 1024**2
    assert {"waiting for a processor", "memory of the processes"} <= {each.name for each in told.curves}


def test_what_the_kernel_does_for_a_thread_is_told_beside_what_a_cached_byte_costs(attempt: str) -> None:
    code = "import os\nzero = os.open('/dev/zero', 0)\nprint('ready', flush=True)\nwhile True: os.read(zero, 2**20)\n"
    with process(attempt, code):
        answer, _ = profiled(attempt, "/nowhere", what="system", seconds=2)
    told = read_system("worker-0", answer["text"])
    (thread,) = json.loads(answer["text"])["threads"]
    assert 0 < thread["kernel"] <= thread["ran"] + 0.05
    assert thread["kernel"] > thread["ran"] / 2, "it reads alone"
    assert 1e-12 < told.hit < 1e-7 and 0 <= told.kernel <= 1


def test_devices_are_looked_at_with_nvidia_smi_where_there_is_one(attempt: str, tmp_path: Path) -> None:
    path = fake(
        tmp_path, "while :; do echo '0, 40, 20000, 80000'; echo '1, [N/A], 1, 2'; sleep 0.1; done", "nvidia-smi"
    )
    with process(attempt):
        answer, _ = profiled(attempt, path, what="system", seconds=5)
    first, second = read_system("worker-0", answer["text"]).devices
    assert (first.number, first.use, first.memory) == (0, 0.4, 0.25)
    assert (second.use, second.memory) == (-1, 0.5)


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"CUDA_VISIBLE_DEVICES": "1,3"}, "1,3"),
        ({"CUDA_VISIBLE_DEVICES": "0", "NVIDIA_VISIBLE_DEVICES": "GPU-7"}, "GPU-7"),
        ({"CUDA_VISIBLE_DEVICES": "1", "NVIDIA_VISIBLE_DEVICES": "all"}, "1"),
        ({"CUDA_VISIBLE_DEVICES": "MIG-a", "NVIDIA_VISIBLE_DEVICES": "MIG-a"}, ""),
        ({}, ""),
    ],
)
def test_a_task_s_devices_are_named_by_ids_where_it_has_them(
    attempt: str, variables: dict[str, str], named: str
) -> None:
    """In a container the numbers are those of the container."""
    with process(attempt, **variables) as running:
        assert named_devices(running.pid) == named


def test_a_task_that_is_over_has_no_machine_to_tell_of(attempt: str) -> None:
    answer, _ = profiled(attempt, "/nowhere", what="system", seconds=1)
    assert answer["problem"] == "no process runs in this task."


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


def fake(folder: Path, script: str, name: str = "py-spy") -> str:
    """A PATH with a program that does what a shell script says."""
    program = folder / "bin" / name
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return f"{program.parent}:/usr/bin:/bin"


def test_the_first_process_of_a_container_lives_without_a_parent_and_one_that_nobody_waited_for_does_not() -> None:
    assert parent(1) == 0 and lives(1)
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert not lives(ended.pid)
    ended.wait()
    assert not lives(ended.pid)
