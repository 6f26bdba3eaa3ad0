"""`corral replay run` with another policy or documents shows both lives of a journal's jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.cli.main import run


def test_waits_by_queue_and_by_job_are_shown_before_and_after(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["replay", "run", str(journal), "--policy", "srtf"]) == 0
    text = capsys.readouterr().out
    assert "as it was → under policy srtf." in text
    assert "job-3  trace  default        8      0s  1h59m → 59m40s" in text
    assert "Gain most: job-3 (1h earlier)." in text and "Lose most: job-2 (10m later)." in text


def test_programs_get_it_as_json(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", "run", str(journal), "--policy", "fifo", "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (queue,) = told["queues"]
    assert queue["before"] == queue["after"] and queue["before"]["started"] == 3
    assert (told["gains"], told["losses"], len(told["jobs"])) == ([], [], 3)


def test_documents_of_a_folder_are_tried(journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queue.yaml").write_text("kind: Queue\nname: default\nlimit: {devices: 4}\n")
    assert run(["replay", "run", str(journal), "--documents", str(tmp_path), "-o", "json"]) == 0
    (queue,) = json.loads(capsys.readouterr().out)["queues"]
    assert (queue["before"]["started"], queue["after"]["started"], queue["after"]["waiting"]) == (3, 0, 3)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--policy", "nope"], "There is no policy 'nope'"),
        (["--policy", "srtf", "--until", "2026-11-27T10:00:00Z"], "play the whole journal"),
        (["--documents", "/nonexistent"], "is not there"),
    ],
)
def test_what_cannot_be_played_is_refused(
    journal: Path, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["replay", "run", str(journal), *words]) != 0
    assert says in " ".join(capsys.readouterr().err.split())
