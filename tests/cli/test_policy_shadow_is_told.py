"""`corral policy shadow` shows a candidate beside the policy in force, as a table, as Markdown and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.cli.main import run


def test_hours_and_differences_are_shown(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "shadow", "srtf", "--file", str(journal)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0].endswith("fifo in force → srtf, which decided beside it.")
    assert "Alike within 1m: 1 of 5 starts." in lines
    assert "09-09 02:00 0 0 1 2 1 → 2 59m50s → 59m40s 59m50s → 1h9m 100% 0 1 → 0" in lines
    assert "all 1 0 2 2 3 59m50s → 59m40s 1h59m → 1h9m 98% 0 0" in lines
    assert any(line.startswith("job-3 trace default start 09-09 03:46:40 09-09 02:46:40") for line in lines)
    assert "Of 3 jobs that started, the candidate starts 1 earlier, 1 later, and 1 at the same time." in lines
    assert "Gain most: job-3 (1h earlier)." in lines and "Lose most: job-2 (10m later)." in lines


def test_programs_get_it_as_json(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "shadow", "fifo", "--file", str(journal), "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["decisions"]["start"] == {"alike": 3, "elsewhere": 0, "onlyInForce": 0, "onlyCandidate": 0}
    assert (told["differences"], told["gains"], told["problem"], told["same"]) == ([], [], "", 3)
    assert [hour["at"] for hour in told["hours"]][1] == "2001-09-09T02:00:00.000Z"


def test_a_pull_request_gets_it_as_markdown(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["policy", "shadow", "srtf", "--file", str(journal), "-o", "markdown", "--differences", "1"]
    assert run(words) == 0
    text = capsys.readouterr().out
    assert text.startswith("### srtf beside fifo\n")
    assert "| JOB | USER | QUEUE | DECISION | IN FORCE | CANDIDATE | WHY |\n| --- |" in text
    assert "2 more decisions of one of both left out (--differences)." in text


def test_a_part_of_it_under_documents(journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queue.yaml").write_text("kind: Queue\nname: default\nlimit: {devices: 4}\n")
    words = ["policy", "shadow", "--documents", str(tmp_path), "--file", str(journal), "-o", "json"]
    assert run([*words, "--from", "2001-09-09T02:00:00Z", "--to", "2001-09-09T03:00:00Z"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["candidate"] == str(tmp_path) and told["begin"] == "2001-09-09T02:00:00.000Z"
    assert told["total"]["inForce"]["started"] == 1 and told["total"]["candidate"]["started"] == 0


def test_a_journal_that_was_cut_off_is_compared_up_to_there(
    journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.journal"
    cut.write_bytes(journal.read_bytes()[:-20])
    assert run(["policy", "shadow", "srtf", "--file", str(cut)]) == 2
    told = capsys.readouterr()
    assert "fifo in force → srtf" in told.out and "was read up to the last whole block" in told.err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["nope", "--file", "JOURNAL"], 2, "There is no policy 'nope'"),
        (["--file", "JOURNAL"], 2, "Name a policy"),
        (["srtf", "--file", "/nonexistent.journal"], 3, "is not there; `corral journal export` writes such a file"),
        (["srtf", "--data", "/nonexistent"], 3, "a server with `journal_days` above 0 writes it"),
        (["srtf", "--file", "JOURNAL", "--follow"], 2, "leave out --file and --to"),
        (["srtf", "--follow", "--for", "1h"], 2, "do not go together"),
        (["srtf", "--for", "soon"], 2, "--for"),
        (["srtf", "--server", "--file", "JOURNAL"], 2, "--server is without --file"),
        (["srtf", "--server", "--follow"], 2, "--server is without --file"),
        (["srtf", "--server", "--data", "/nonexistent"], 2, "--server is without --file"),
        (["srtf", "--file", "JOURNAL", "--from", "noon"], 2, "is not a time"),
        (["--documents", "/nonexistent", "--file", "JOURNAL"], 3, "is not there"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    journal: Path, words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [str(journal) if word == "JOURNAL" else word for word in words]
    assert run(["policy", "shadow", *named]) == code
    assert says in " ".join(capsys.readouterr().err.split())
