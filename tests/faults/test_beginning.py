"""A server does not silently start empty beside existing data, nor with another key; its own logs rotate."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from corral import datafolder
from corral.rotation import KEPT
from tests.faults.house import House, assert_sentence, until

Build = Callable[..., House]


@pytest.fixture
def left(build: Build) -> House:
    """A house that has run a job and lost its database."""
    house = build()
    house.up()
    assert house.until_ended(house.submit("before", "echo seen"))["state"] == "succeeded"
    house.down()
    for path in house.data.glob("corral.db*"):
        path.unlink()
    return house


def refused(house: House) -> str:
    done = house.try_up()
    assert done.returncode == 4, done
    assert_sentence(done.stderr.strip())
    assert not (house.data / "corral.db").exists()
    return done.stderr


def test_a_start_beside_key_logs_or_engine_folder_without_their_database_is_refused_unless_new(left: House) -> None:
    said = refused(left)
    assert "a key, logs and an engine folder" in said and "--new" in said and "corral restore" in said
    aside = left.home / "aside"
    aside.mkdir()
    for name, kept in (("a key", "key"), ("logs", "logs"), ("logs", "blobs"), ("an engine folder", "engine")):
        others = [path for path in left.data.iterdir() if path.name not in (kept, "run")]
        for path in others:
            path.rename(aside / path.name)
        assert datafolder.left_behind(left.data) == [name]
        assert f"has {name} of an earlier server" in refused(left)
        for path in others:
            (aside / path.name).rename(path)
    kept_key = (left.data / "key").read_bytes()
    left.token = ""
    left.up("--new")
    assert left.call("GET", "/api/v3/jobs").body["items"] == []
    assert (left.data / "key").read_bytes() == kept_key
    left.down()
    left.up()


def test_on_a_terminal_it_asks_and_begins_anew_only_after_a_yes(left: House) -> None:
    assert asked(left, b"n\n") != 0
    assert not (left.data / "corral.db").exists()
    assert asked(left, b"y\n") == 0
    assert (left.data / "corral.db").exists()


def asked(house: House, answer: bytes) -> int:
    """Run `corral up` with a terminal that answers its question; returns its exit code."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer)
        command = [sys.executable, "-m", "corral.cli.main", "up", "--detach", "--data", str(house.data), "--port", "0"]
        done = subprocess.run(
            command, stdin=theirs, capture_output=True, text=True, env=house.environment, timeout=120, check=False
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert "Start empty?" in done.stderr, done
    return done.returncode


def test_a_first_start_that_failed_leaves_nothing_that_the_next_one_stumbles_over(build: Build) -> None:
    house = build()
    assert house.try_up("--host", "192.0.2.1").returncode != 0
    house.environment["CORRAL_BLOBS"] = "nonsense://nowhere"
    assert house.try_up().returncode != 0
    del house.environment["CORRAL_BLOBS"]
    house.up()


def test_a_missing_key_beside_sealed_secrets_is_refused_and_beside_none_is_made(build: Build) -> None:
    house = build()
    house.up()
    house.down()
    key = house.data / "key"
    key.unlink()
    house.up()
    stored = house.call("PUT", "/api/v3/secrets/token", {"value": "hunter2"})
    assert stored.status in (200, 201, 204), stored
    house.down()
    kept = key.read_bytes()
    key.unlink()
    done = house.try_up()
    assert done.returncode == 4, done
    assert_sentence(done.stderr.strip())
    assert "1 secrets" in done.stderr and "backup" in done.stderr
    assert not key.exists()
    key.write_bytes(kept)
    house.up()
    assert house.call("GET", "/api/v3/me").status == 200


def test_the_servers_own_logs_rotate_and_lose_no_line(build: Build) -> None:
    house = build(environment={"CORRAL_SERVER_LOG_BYTES": "100"})
    house.up()
    logs = house.data / "logs"
    before = house.processes()
    for _ in range(2):
        killed = house.kill("control")
        until(lambda gone=killed: house.processes().get("control", gone) != gone, "another control")
    until(lambda: (logs / "control.log.1").exists() and (logs / "supervisor.log.1").exists(), "logs moved aside")
    assert house.processes()["supervisor"] == before["supervisor"]
    assert house.until_ended(house.submit("after", "true"))["state"] == "succeeded"


_WRITER = """
import os, sys
from pathlib import Path
from corral.rotation import Rotation
path = Path(sys.argv[1])
log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.dup2(log, 2)
rotation = Rotation(path, 500)
for number in range(300):
    print("line", number, file=sys.stderr, flush=True)
    rotation.look()
"""


def test_a_log_that_is_full_is_moved_aside_and_so_many_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "front.log"
    subprocess.run([sys.executable, "-c", _WRITER, str(path)], check=True)
    kept = [*(path.with_name(f"front.log.{number}") for number in range(KEPT, 0, -1)), path]
    lines = "".join(each.read_text() for each in kept).splitlines()
    assert lines == [f"line {number}" for number in range(300 - len(lines), 300)]
    assert len(lines) > 150
    assert {each.name for each in tmp_path.iterdir()} == {each.name for each in kept}
    assert all(each.stat().st_size < 600 for each in kept)
