"""Kill the server's processes at random moments: no job, exit code or log line is lost, and no job runs twice at once."""

from __future__ import annotations

import fcntl
import io
import os
import signal
import subprocess
from pathlib import Path

import pytest

from bench import crash
from corral.control.core import IntentsRead
from corral.control.journal.export import export
from corral.control.journal.folder import recorded
from corral.control.journal.records import Step, decoded
from corral.control.journal.replay import replay
from corral.model.store_writes import IntentKind
from tests import warm


@pytest.mark.timeout(600)
def test_fifty_kills_at_random_moments_lose_and_double_nothing(tmp_path: Path) -> None:
    tally = crash.run(tmp_path, kills=50, seed=1, corral=lambda words, env: warm.corral(words, env=env, seconds=200))

    assert tally.kills == 50
    assert tally.jobs >= 20
    assert tally.lost == []
    assert tally.wrong_code == []
    assert tally.wrong_log == []
    assert tally.doubled == []
    assert tally.devices_taken >= 20
    assert tally.devices_doubled == []
    assert tally.left_behind == []
    assert tally.removed > 0 and tally.left > 0

    export(recorded(tmp_path / "data" / "journal"), file := io.BytesIO())
    found = replay(file)
    assert (found.difference, found.problem) == (None, "") and found.begun > 10
    assert len(submitted(tmp_path / "data" / "journal")) == tally.jobs, "the journal has every job that was stored"


def submitted(journal: Path) -> set[str]:
    """The jobs whose submission a journal has."""
    steps = [each for data in recorded(journal) if isinstance(each := decoded(data), Step)]
    reads = [each for step in steps for each in step.inputs if isinstance(each, IntentsRead)]
    return {intent.job for read in reads for intent in read.intents if intent.kind == IntentKind.SUBMITTED}


def test_a_device_that_two_jobs_have_at_once_is_noted(tmp_path: Path) -> None:
    """Check the checker: without this, a count of zero would prove nothing."""
    other = (tmp_path / "device-node2-3").open("a")
    fcntl.flock(other, fcntl.LOCK_EX)
    given = {"CRASH_FOLDER": str(tmp_path), "CORRAL_JOB_ID": "j", "CORRAL_ATTEMPT": "a"}
    env = os.environ | given | {"CORRAL_NODE": "local/node2", "CORRAL_DEVICES": "2,3"}
    done = subprocess.run(["sh", "-c", crash.task_script("0", 3)], env=env, check=False, capture_output=True)
    assert done.returncode == 3
    assert (tmp_path / "devices-doubled").read_text() == "a:device-node2-3\n"
    assert len((tmp_path / "devices-taken").read_text().splitlines()) == 1
    fcntl.flock((tmp_path / "device-node2-2").open("a"), fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_process_that_a_job_leaves_behind_holds_its_device_and_is_found(tmp_path: Path) -> None:
    given = {"CRASH_FOLDER": str(tmp_path), "CORRAL_JOB_ID": "j", "CORRAL_ATTEMPT": "a"}
    env = os.environ | given | {"CORRAL_NODE": "local/node2", "CORRAL_DEVICES": "2"}
    script = crash.task_script("0", 0, crash._LEAVES)
    subprocess.run(["sh", "-c", script], env=env, check=True, stdout=subprocess.DEVNULL)
    (left,) = crash._sleeping(crash._left())
    try:
        with pytest.raises(BlockingIOError):
            fcntl.flock((tmp_path / "device-node2-2").open("a"), fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.kill(int(left), signal.SIGKILL)
