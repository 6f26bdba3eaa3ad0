"""A complete checkpoint is found, reported once and not too often, and reported again if the server is down."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from corral.runtime.checkpoints import APART_SECONDS, STILL_SECONDS, Checkpoints, newest, watch
from corral.runtime.peers import Api, Refused


class Server(Api):
    """Records the calls, and fails as the test says."""

    def __init__(self, *faults: Exception) -> None:
        self.told: list[dict[str, Any]] = []
        self.faults = list(faults)

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        assert (method, path) == ("POST", "/api/v3/runtime/checkpoint") and body is not None
        if self.faults:
            raise self.faults.pop(0)
        self.told.append(body)
        return None


def write(path: Path, at: int) -> None:
    """Change a file and set its time."""
    path.write_text(str(at))
    os.utime(path, (at, at))


def looks(checkpoints: Checkpoints, start: float, end: float) -> None:
    """Scan twice a second."""
    for half in range(int(start * 2), int(end * 2)):
        checkpoints.look(half / 2)


def test_what_was_there_before_is_no_news_and_a_change_is_told_once_it_is_still(tmp_path: Path) -> None:
    server, path = Server(), tmp_path / "latest.pt"
    write(path, 1000)
    checkpoints = Checkpoints(server, "job.0.worker.0.0", str(path))
    looks(checkpoints, 0, 20)
    assert server.told == []
    for at in (20.0, 20.5, 21.0, 21.5):
        write(path, 2000 + int(at * 2))
        checkpoints.look(at)
    assert server.told == [], "it is still being written"
    looks(checkpoints, 22, 40)
    assert server.told == [{"attempt": "job.0.worker.0.0", "ageSeconds": STILL_SECONDS}]


def test_a_path_that_is_not_there_yet_or_goes_away_is_waited_for(tmp_path: Path) -> None:
    server, path = Server(), tmp_path / "later" / "latest.pt"
    checkpoints = Checkpoints(server, "a", str(path))
    looks(checkpoints, 0, 5)
    path.parent.mkdir()
    write(path, 1000)
    looks(checkpoints, 5, 10)
    assert len(server.told) == 1
    path.unlink()
    looks(checkpoints, 10, 20)
    write(path, 2000)
    looks(checkpoints, 20, 30)
    assert len(server.told) == 2


def test_a_job_that_saves_all_the_time_is_told_of_now_and_then(tmp_path: Path) -> None:
    server, path = Server(), tmp_path / "latest.pt"
    checkpoints = Checkpoints(server, "a", str(path))
    for second in range(100):
        write(path, 1000 + second // 2)
        checkpoints.look(second)
    assert 100 / APART_SECONDS / 2 < len(server.told) <= 100 / APART_SECONDS


def test_a_server_that_is_away_is_told_later_how_old_it_is_by_then(tmp_path: Path) -> None:
    server, path = Server(OSError("no answer"), OSError("no answer")), tmp_path / "latest.pt"
    checkpoints = Checkpoints(server, "a", str(path))
    write(path, 1000)
    looks(checkpoints, 0, 60)
    (told,) = server.told
    assert told["ageSeconds"] == STILL_SECONDS + 2 * APART_SECONDS


def test_a_refusal_ends_it_with_one_line_in_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server, path = Server(Refused("the server answers 403: this task's job does not run")), tmp_path / "x"
    checkpoints = Checkpoints(server, "a", str(path))
    write(path, 1000)
    looks(checkpoints, 0, 2)
    assert checkpoints.over and server.told == []
    watch(checkpoints, threading.Event())  # returns at once
    assert capsys.readouterr().err.count("could not be reported") == 1


def test_the_newest_of_a_folder_and_of_what_is_directly_in_it_counts(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    assert newest(str(folder)) is None
    folder.mkdir()
    for name, at in (("old", 1000), ("new", 5000)):
        write(folder / name, at)
    os.utime(folder, (3000, 3000))
    assert newest(str(folder)) == 5000 * 10**9
    os.utime(folder, (9000, 9000))
    assert newest(str(folder)) == 9000 * 10**9
    assert newest(str(folder / "old")) == 1000 * 10**9
