"""The traces that PyTorch's processes of a task write are sent: whole, cut beyond the bound, or with why there is none."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.runtime.profile_start import program

pytestmark = pytest.mark.processes
PROGRAM = program().replace(b"_POLL_SECONDS = 9.0", b"_POLL_SECONDS = 0.1")
"""The profiler, which gives its stand-ins for PyTorch no five seconds to ask, as they have asked before."""
READ = "import sys;i=sys.stdin.buffer;exec(compile(i.read(int(i.readline())),'profile','exec'))"
BOUND = 20_000
PYTORCH = """\
import os, sys, time
folder, events = os.environ["KINETO_IPC_SOCKET_DIR"], int(sys.argv[1])
open(f"{folder}/given-{os.getpid()}", "w").close()
print("ready", flush=True)
while not os.path.exists(f"{folder}/asked"): time.sleep(0.01)
asked = dict(line.strip().split("=") for line in open(f"{folder}/asked"))
with open(asked["ACTIVITIES_LOG_FILE"].replace(".json", f"_{os.getpid()}.json"), "w") as file:
    file.write('{"traceEvents": [')
    file.write(",".join(f'\\n  {{\\n    "name": "op{at}"\\n  }}' for at in range(events)))
    if not events: sys.exit()
    file.write('\\n  ],\\n  "traceName": "x"\\n}\\n')
sys.stdin.read()
"""
"""Writes a trace of so many events, or dies while it writes one."""


@contextlib.contextmanager
def pytorch(attempt: str, folder: Path, events: int) -> Iterator[int]:
    """A process of the task that has asked whether a trace is wanted; its id."""
    env = {"CORRAL_ATTEMPT": attempt, "KINETO_IPC_SOCKET_DIR": str(folder), "PATH": os.environ["PATH"]}
    words = [sys.executable, "-I", "-S", "-c", PYTORCH, str(events)]
    with subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None and running.stdout.readline() == "ready\n"
            yield running.pid
        finally:
            running.kill()


def traced(attempt: str) -> list[dict[str, Any]]:
    """What the profiler says of the task, but for its last line."""
    request = {"what": "torch", "seconds": 0.1, "rate": 50, "processes": 8, "bytes": BOUND, "start": 0}
    given = b"%d\n" % len(PROGRAM) + PROGRAM + json.dumps(request).encode() + b"\n"
    words = [sys.executable, "-I", "-S", "-c", READ, "corral-profile"]
    env = {"CORRAL_ATTEMPT": attempt, "PATH": os.environ["PATH"]}
    done = subprocess.run(words, env=env, input=given, capture_output=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    *told, end = map(json.loads, done.stdout.splitlines())
    assert end["done"]
    return told


def trace_of(told: list[dict[str, Any]], pid: int) -> list[Any]:
    packed = b"".join(base64.b64decode(each["trace"]) for each in told if each.get("of") == pid)
    return list(json.loads(gzip.decompress(packed))["traceEvents"])


def test_a_trace_beyond_its_bound_is_cut_and_said_and_a_rank_that_dies_meanwhile_is_told(tmp_path: Path) -> None:
    attempt = f"traced-{tmp_path.name}"
    with (
        pytorch(attempt, tmp_path, 3) as small,
        pytorch(attempt, tmp_path, 5000) as large,
        pytorch(attempt, tmp_path, 0) as dying,
    ):
        told = traced(attempt)
    said = {each["process"]: each for each in told if "process" in each}
    assert [each["name"] for each in trace_of(told, small)] == ["op0", "op1", "op2"]
    kept = trace_of(told, large)
    assert 0 < len(kept) < 5000 and kept == [{"name": f"op{at}"} for at in range(len(kept))]
    assert (said[small]["cut"], said[large]["cut"]) == (False, True)
    assert said[dying]["problem"] == f"process {dying} ended meanwhile."
    assert list(tmp_path.iterdir()) == []


def test_a_task_whose_pytorch_does_not_ask_and_one_that_is_traced_already_are_told_in_one_sentence(
    tmp_path: Path,
) -> None:
    attempt = f"traced-{tmp_path.name}"
    with pytorch(attempt, tmp_path, 1) as pid:
        (tmp_path / "asked.until").write_text(str(time.time() + 1000))
        (busy,) = traced(attempt)
        (tmp_path / "asked.until").unlink()
        (tmp_path / f"given-{pid}").unlink()
        (silent,) = traced(attempt)
    assert busy["problem"] == "another profile of this task is being taken; try again in a minute."
    assert silent["problem"].startswith("no PyTorch asked for a trace: ")
    (none,) = traced(attempt)
    assert "set `profile: true`" in none["problem"]
