"""Whoever is killed and whenever: no job, exit code or log line is lost, and nothing runs twice at once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bench import crash


@pytest.mark.timeout(600)
def test_fifty_kills_at_random_moments_lose_and_double_nothing(tmp_path: Path) -> None:
    tally = crash.run(tmp_path, kills=50, seed=1)

    assert tally.kills == 50
    assert tally.jobs >= 20
    assert tally.lost == []
    assert tally.wrong_code == []
    assert tally.wrong_log == []
    assert tally.doubled == []
    assert tally.devices_taken >= 20
    assert tally.devices_doubled == []


def test_a_device_that_two_jobs_have_at_once_is_noted(tmp_path: Path) -> None:
    """The judge itself: without this a count of nothing would prove nothing."""
    (tmp_path / "device-node2-3").mkdir()
    given = {"CRASH_FOLDER": str(tmp_path), "CORRAL_JOB_ID": "j", "CORRAL_ATTEMPT": "a"}
    env = os.environ | given | {"CORRAL_NODE": "local/node2", "CORRAL_DEVICES": "2,3"}
    done = subprocess.run(["sh", "-c", crash.task_script("0", 3)], env=env, check=False, capture_output=True)
    assert done.returncode == 3
    assert (tmp_path / "devices-doubled").read_text() == "a:device-node2-3\n"
    assert len((tmp_path / "devices-taken").read_text().splitlines()) == 1
    assert [path.name for path in tmp_path.glob("device-*")] == []
