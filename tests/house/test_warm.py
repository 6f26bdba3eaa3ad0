"""A command that is forked for a test is what a process of its own would be."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import warm

JOB = "name: seeds\nframework: shell\nroles: {main: {command: 'true'}}\n"


def test_output_errors_and_exit_code_are_those_of_the_program(tmp_path: Path) -> None:
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    for words in (["version"], ["nonsense"], ["ls"]):
        alone = subprocess.run(
            [sys.executable, "-m", "corral.cli.main", *words], env=env, capture_output=True, text=True, check=False
        )
        done = warm.corral(words, env=env, seconds=60)
        assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_it_has_the_folder_the_input_and_the_environment_of_the_call(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    assert "seeds" in warm.corral(["convert", "job.yaml"], env=os.environ, cwd=tmp_path, seconds=60).stdout
    assert "seeds" in warm.corral(["convert", "-"], env=os.environ, given=JOB, seconds=60).stdout
    elsewhere = {**os.environ, "CORRAL_URL": "http://127.0.0.1:9"}
    assert "127.0.0.1:9" in warm.corral(["ls"], env=elsewhere, seconds=60).stderr
    assert "127.0.0.1:9" not in warm.corral(["ls"], env=os.environ, seconds=60).stderr


def test_a_command_that_changes_the_interpreter_gets_one_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('of its own')")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    assert warm.corral(["version"], env=env, seconds=60).stdout.startswith("of its own\n")


def test_a_command_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    fifo = tmp_path / "job.yaml"
    os.mkfifo(fifo)
    with pytest.raises(subprocess.TimeoutExpired):
        warm.corral(["convert", str(fifo)], env=os.environ, seconds=0.5)  # waits for a writer
    until = time.monotonic() + 60
    parents = [pid for pid in _children(os.getpid()) if b"tests.warm" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(parents) == 1
    while _children(parents[0]):
        assert time.monotonic() < until
        time.sleep(0.02)


def _children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
