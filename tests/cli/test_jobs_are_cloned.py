"""`corral clone` submits a job's own file again, with its code, parameters and secrets."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner, Result

from corral.cli.submit import clone_command


class Client:
    """The part of a client that has files of jobs."""

    secrets = 0
    edits: tuple[str, ...] = ()

    def __init__(self) -> None:
        Client.sent: list[dict[str, Any]] = []

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def job_file(self, ref: str) -> dict[str, Any]:
        text, given = f"name: {ref} # mine\n", {"lr": "0.1", "epochs": "3"}
        return {
            "job": "1m8",
            "text": text,
            "parameters": given,
            "code": "abc",
            "secrets": self.secrets,
            "edits": self.edits,
        }

    def submit(self, text: bytes, **asked: Any) -> dict[str, Any]:
        Client.sent.append({"text": text, **asked})
        if asked["dry_run"]:
            return {"wouldStart": True, "notes": []}
        return {"id": "1m9", "name": "digits", "links": {}, "notes": []}


@pytest.fixture(autouse=True)
def _client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.cli.submit.connect", Client)


def clone(*words: str) -> Result:
    done = CliRunner().invoke(clone_command, ["digits", *words], standalone_mode=False)
    assert done.exception is None, done.exception
    return done


def test_the_file_goes_with_its_code_and_parameters_of_which_some_may_be_others() -> None:
    assert clone("-p", "lr=0.01").stdout == "1m9\n"
    (sent,) = Client.sent
    assert sent["text"] == b"name: digits # mine\n" and sent["code"] == "abc" and sent["source"] == ""
    assert sent["parameters"] == {"lr": "0.01", "epochs": "3"} and not sent["dry_run"]


def test_secrets_of_the_job_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "secrets", 1)
    clone()
    assert Client.sent[0]["source"] == "1m8"


def test_a_dry_run_submits_nothing_and_shows_yaml_too() -> None:
    assert clone("--dry-run").stdout == "The job would start now.\n" and Client.sent[0]["dry_run"]
    assert "wouldStart: true\n" in clone("--dry-run", "-o", "yaml").stdout


def test_edits_that_the_file_does_not_have_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "edits", ("ann set the priority to 100.",))
    assert "as its file says. ann set the priority to 100." in clone().stderr
