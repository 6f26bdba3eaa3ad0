"""What people type first and by mistake is refused with a sentence that says what to type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from corral.cli.accounts import secret_command
from corral.cli.document_files import job_alone, jobs_of
from corral.cli.main import run
from corral.kernel.errors import Forbidden, InvalidInput, NotFound


class Secrets:
    """The part of a client that stores secrets."""

    stored: dict[str, str]

    def __init__(self) -> None:
        Secrets.stored = {}

    def __enter__(self) -> Secrets:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def put_secret(self, name: str, value: str) -> None:
        self.stored[name] = value


@pytest.mark.parametrize("given", ["", "\n"])
def test_an_empty_secret_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setattr("corral.cli.accounts.connect", Secrets)
    done = CliRunner().invoke(secret_command, ["set", "tok"], input="x\n", standalone_mode=False)
    assert done.exception is None and Secrets.stored == {"tok": "x"}
    Secrets.stored = {}
    done = CliRunner().invoke(secret_command, ["set", "tok"], input=given, standalone_mode=False)
    assert isinstance(done.exception, InvalidInput) and "tok was not stored" in done.exception.message
    assert not Secrets.stored


def test_a_journal_is_given_to_replay_without_a_command(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(journal)]) == 2
    assert f"Did you mean corral replay run {str(journal)[:100]}?" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["usage", "efficiency"])
def test_a_time_that_is_none_names_its_option(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("usage_report", "efficiency"):
        monkeypatch.setattr(f"corral.cli.{module}.connect", Secrets)
    assert run([command, "--from", "yesterday"]) == 2
    assert "--from 'yesterday' is not a time; write it as" in capsys.readouterr().err


class Jobs(Secrets):
    """The part of a client that lists jobs, of which there are none."""

    def jobs(self, **_: Any) -> Any:
        return {"items": [], "next": None}

    def queue(self, name: str) -> None:
        raise NotFound("queue-not-found", f"There is no queue {name}; they are default.")

    def user(self, name: str) -> None:
        if name == "ann":
            raise Forbidden("not-allowed", "Only administrators may do that.")
        raise NotFound("user-not-found", f"There is no account {name}.")


def test_a_list_without_jobs_names_a_queue_and_a_user_that_are_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("corral.cli.jobs.connect", Jobs)
    assert run(["ls", "--queue", "nosuch", "-u", "nobody", "-u", "ann"]) == 0
    said = capsys.readouterr().err
    assert "There is no queue nosuch; they are default.\nThere is no account nobody.\nNo job matches." in said
    assert "administrators" not in said


@pytest.mark.parametrize("name", ["", "ml team", "größe", "a/b", "x/../y", "a+b", "x%y", "n" * 500])
def test_names_that_no_queue_or_account_can_have_are_told_and_not_asked_for(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Asked(Jobs):
        def queue(self, name: str) -> None:
            raise AssertionError("A path cannot hold this name.")

        user = queue

    monkeypatch.setattr("corral.cli.jobs.connect", Asked)
    assert run(["ls", "--queue", name, "-u", name]) == 0
    said = capsys.readouterr().err
    assert f"There is no queue {name[:80]!r}.\nThere is no account {name[:80]!r}.\nNo job matches." in said


@pytest.mark.parametrize(
    ("text", "job"),
    [
        (b"name: x\nroles: {w: {command: a}}\n", True),
        (b"kind: Framework\napiVersion: frameworkcontroller.microsoft.com/v1\n", True),
        (b"kind: Queue\nmetadata: {name: roles}\n", False),
        (b"name: x\n# roles\n", False),
        (b"virtualClusters: {}\n", False),
    ],
)
def test_a_file_of_a_short_job_alone_is_a_job_for_apply(text: bytes, job: bool) -> None:
    found = job_alone(text, "job.yaml")
    assert jobs_of(found) == ([text] if job else [])


def test_what_is_neither_machines_nor_a_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("submitted,seconds,devices\n0,3600,8\n")
    assert run(["sim", "run", "--trace", str(trace), "--cluster", "abc"]) == 3
    assert "abc is neither NODESxDEVICES, such as 4x8, nor a file." in capsys.readouterr().err


def test_formats_of_traces_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text("nothing\n")
    assert run(["sim", "run", "--trace", str(trace), "--cluster", "1x8"]) == 2
    said: Any = capsys.readouterr().err
    assert "fits no format; name one by --format:" in said and "philly" in said and "plain" in said


def test_without_a_terminal_no_word_of_a_bar_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("submitted,seconds,devices\n0,3600,8\n")
    assert run(["sim", "run", "--trace", str(trace), "--cluster", "1x8", "--policy", "fifo"]) == 0
    assert not capsys.readouterr().err
