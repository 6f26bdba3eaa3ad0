"""`corral get` and `corral ls` show the true state of a job."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from corral.cli.job_detail import detail_text
from corral.cli.jobs import get_command, short_reason
from corral.cli.storages import get_file
from corral.kernel.errors import Conflict, NotFound
from corral.kernel.kinds import KIND_WORDS

WAITS = {"code": "no-room", "message": "It needs 4 devices; 0 of 8 are free.", "ahead": 4, "possible": True}


def detail(**more: Any) -> Any:
    """A job as the API shows it."""
    tasks = {"total": 1, "waiting": 1, "running": 0, "succeeded": 0, "failed": 0}
    counted = {"minReplicas": 1, "maxReplicas": 1, "replicas": 1, "targetReplicas": {}}
    job = {
        "id": "0123456789abc",
        "name": "vb",
        "state": "waiting",
        "user": "ann",
        "queue": "vision",
        "priority": 10,
        "jobType": "shell",
        "tasks": tasks,
        "devices": 4,
        "createdAt": "2026-01-01T00:00:00Z",
        "startedAt": None,
        "endedAt": None,
        "attempt": 0,
        "retries": 0,
        "tags": [],
        "document": {"spec": {"replicaSpec": counted}},
        "waiting": WAITS,
        "exit": None,
    }
    return job | more


def test_how_many_were_ahead_when_the_reason_was_stored_is_not_told_as_if_it_were_so_now() -> None:
    reasons = {"binding": WAITS, "others": [], "ahead": 4, "possible": True}
    text = click.unstyle(detail_text(detail(reasons=reasons)))
    assert "It needs 4 devices; 0 of 8 are free." in text and "4 ahead" not in text
    assert "corral explain 0123456789abc" in text


def test_an_attempt_has_the_number_that_logs_and_attempts_give_it() -> None:
    assert "1, counted from 0 (corral attempts" in click.unstyle(detail_text(detail(attempt=1)))
    assert "Attempt" not in detail_text(detail())


def test_a_long_reason_is_cut_after_a_word_and_with_a_mark() -> None:
    waits = WAITS | {"message": "The queue vision may hold 8 devices, " + "and others hold them now, " * 4}
    reason = click.unstyle(short_reason(detail(waiting=waits)))
    assert reason.endswith(" others hold…") and len(reason) <= 81
    assert click.unstyle(short_reason(detail())) == WAITS["message"]


def test_the_help_of_get_names_every_word_for_a_kind() -> None:
    words = re.findall(r"[a-z]+", get_command.help or "")
    assert not KIND_WORDS.keys() - set(words)


def placed(index: int, state: str) -> Any:
    """A task as the job shows it."""
    where: dict[str, Any] = {
        "node": "local/node1",
        "devices": [],
        "host": "node1",
        "ports": {},
        "share": None,
        "rank": None,
    }
    return {"role": "w", "index": index, "state": state, **where}


def ended(index: int, code: int, phrase: str, retry: str) -> Any:
    """A task as the list of tasks shows it."""
    end = {"code": code, "phrase": phrase, "class": retry, "message": ""}
    return {"role": "w", "index": index, "state": "completed", "exit": end}


def test_each_task_of_a_failed_job_has_its_word_and_its_exit() -> None:
    counts = {"total": 4, "waiting": 0, "running": 0, "succeeded": 1, "failed": 1, "stopped": 1}
    tasks = [
        ended(0, 0, "Succeeded", "succeeded"),
        ended(1, 3, "UserCommandExitWithError", "unknown"),
        ended(2, -220, "JobAttemptEnded", "permanent"),
    ]
    places = [*(placed(index, "completed") for index in range(3)), placed(3, "creation-pending")]
    job = detail(state="failed", tasks=counts, placement=places, exit=tasks[1]["exit"], waiting=None)
    text = click.unstyle(detail_text(job, tasks))
    assert "4 (1 succeeded, 1 failed, 1 stopped)" in text and "UserCommandExitWithError (exit code 3)\n" in text
    assert [re.split(r" {2,}", line)[:3] for line in text.splitlines() if re.match(r"w-\d|TASK", line)] == [
        ["TASK", "STATE", "EXIT"],
        ["w-0", "succeeded", "local/node1"],
        ["w-1", "failed", "UserCommandExitWithError (3)"],
        ["w-2", "stopped", "JobAttemptEnded (-220)"],
        ["w-3", "waiting", "local/node1"],
    ]
    assert "EXIT" not in detail_text(job)


class Server:
    """The part of a client that these commands use."""

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def documents(self, **_: Any) -> Any:
        return {"items": [], "next": None}

    def job(self, ref: str) -> Any:
        if ref != "vc":
            raise NotFound("job-not-found", f"There is no job {ref}.")
        return detail(name="vc")

    def storage_file(self, storage: str, path: str) -> list[bytes]:
        return [b"new"]


@pytest.mark.parametrize(("kind", "told"), [("vc", True), ("queues", False)])
def test_a_job_that_is_called_as_a_kind_is_told_of(monkeypatch: pytest.MonkeyPatch, kind: str, told: bool) -> None:
    for module in ("jobs", "configuration"):
        monkeypatch.setattr(f"corral.cli.{module}.connect", Server)
    done = CliRunner().invoke(get_command, [kind], standalone_mode=False)
    assert done.exception is None and ("corral get 0123456789abc" in done.stderr) == told


def test_a_file_from_a_storage_is_written_over_nothing_unless_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("corral.cli.storages.connect", Server)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("old")
    refused = CliRunner().invoke(get_file, ["shared", "x/data.csv"], standalone_mode=False)
    assert isinstance(refused.exception, Conflict) and "--force" in refused.exception.message
    assert (tmp_path / "data.csv").read_text() == "old"
    for words, name in ((["--force"], "data.csv"), (["-o", "other.csv"], "other.csv")):
        done = CliRunner().invoke(get_file, ["shared", "x/data.csv", *words], standalone_mode=False)
        assert done.exception is None and (tmp_path / name).read_text() == "new"
