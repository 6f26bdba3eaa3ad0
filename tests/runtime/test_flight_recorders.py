"""The dumps of NCCL's flight recorders, which a program stands for that reads its pipe as NCCL does."""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corral.runtime import task_profile

RECORDER = """\
import os, pickle, sys, time
folder = os.environ["CORRAL_FLIGHT_RECORDER"]
pipe = f"{folder}/recorder-{sys.argv[1]}.pipe"
os.mkfifo(pipe)
asked = os.open(pipe, os.O_RDWR)
print("ready", flush=True)
number = 0
while os.read(asked, 1):
    number += 1
    time.sleep(1.5)  # modules are loaded
    with open(f"{folder}/dump-{sys.argv[1]}", "wb") as file:
        file.write(pickle.dumps(number, 2))
"""


@contextmanager
def recording(folder: Path, rank: int, **variables: str) -> Iterator[int]:
    """A process with a recorder; its pid."""
    environment = {**os.environ, "CORRAL_FLIGHT_RECORDER": str(folder), **variables}
    command = [sys.executable, "-c", RECORDER, str(rank)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield process.pid
        finally:
            process.kill()


def sent(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """What was sent, by the names of the files."""
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {each["file"]: pickle.loads(base64.b64decode(each["data"])) for each in answers}


def test_a_dump_is_the_one_that_was_asked_for_and_names_its_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with recording(tmp_path, 0) as pid:
        task_profile.send_recorders([pid], 10**6)
        assert sent(capsys) == {f"dump-0.{pid}.pickle": 1}
        task_profile.send_recorders([pid], 10**6)  # the file of the first time is there already
        assert sent(capsys) == {f"dump-0.{pid}.pickle": 2}


def test_dumps_of_several_ranks_of_a_task_are_told_apart_by_their_variable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with recording(tmp_path, 2, RANK="2") as second, recording(tmp_path, 3, RANK="3") as third:
        task_profile.send_recorders([second, third], 10**6)
        assert sent(capsys) == {f"dump-2.{second}.pickle": 1, f"dump-3.{third}.pickle": 1}


def test_a_pipe_that_nobody_reads_holds_nothing_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with recording(tmp_path, 0) as pid:
        os.mkfifo(tmp_path / "recorder-1.pipe")
        task_profile.send_recorders([pid], 10**6)
        assert list(sent(capsys)) == [f"dump-0.{pid}.pickle"]
