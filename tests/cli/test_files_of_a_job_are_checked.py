"""`corral validate --from JOB` and `corral openpai check --from JOB` have the server fill in secrets for placeholders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corral.cli import server_check
from corral.cli.main import run
from corral.model.views import ProblemView, Validation
from corral.spec.errors import SpecError
from corral.spec.job_reader import read_job
from tests.spec.openpai_files import job_file, role_of

SEALED = {"kept": {'["secrets","token"]': "hush-hush-value"}}
SHORT = "name: second\nframework: shell\nroles: {worker: {command: [echo, hi]}}\n"


class Server:
    """Checks files as the service does, with the secrets of the job `kept`."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def validate(self, text: bytes, *, parameters: Mapping[str, str], source: str) -> Any:
        self.asked.append(source)
        try:
            read = read_job(text, parameters=parameters, filename="the job file", sealed=SEALED.get(source, {}))
        except SpecError as error:
            problems = tuple(msgspec.convert(each.to_document(), ProblemView) for each in error.problems)
            return msgspec.to_builtins(Validation(False, problems))
        return msgspec.to_builtins(Validation(True, document=read.job.to_document()))

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(server_check, "connect", lambda: made)
    return made


@pytest.fixture
def masked(tmp_path: Path) -> str:
    """A file as `corral get JOB --file` prints it."""
    file = tmp_path / "again.yaml"
    role = role_of(commands=["echo <% $secrets.token %>"])
    file.write_text(job_file(secrets={"token": "******"}, taskRoles={"worker": role}))
    return str(file)


def test_a_placeholder_is_valid_where_the_named_job_has_its_secret(
    server: Server, masked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["validate", masked, "-o", "json"]) == 2
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert "--from JOB" in problem["message"] and server.asked == []
    assert run(["validate", masked, "--from", "kept", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["valid"] and server.asked == ["kept"]


def test_problems_that_the_server_finds_have_the_files_own_name_and_line(
    server: Server, masked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["validate", masked, "-o", "json"]) == 2
    here = json.loads(capsys.readouterr().out)["problems"]
    assert run(["validate", masked, "--from", "other", "-o", "json"]) == 2
    assert json.loads(capsys.readouterr().out)["problems"] == here and here[0]["line"] > 0
    assert run(["validate", masked, "--from", "other"]) == 2
    assert masked in capsys.readouterr().out


def test_each_job_of_a_file_is_checked_by_the_server_at_its_own_line(
    server: Server, masked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = Path(masked).read_text()
    both = tmp_path / "both.yaml"
    both.write_text(f"{first}---\n{SHORT}")
    assert run(["validate", str(both), "--from", "kept"]) == 0 and server.asked == ["kept", "kept"]
    both.write_text(f"{SHORT}---\n{first}")
    capsys.readouterr()
    assert run(["validate", str(both), "--from", "other", "-o", "json"]) == 2
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert "******" in both.read_text().splitlines()[problem["line"] - 1]


def test_a_cluster_file_came_from_no_job(masked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", masked, "--cluster", "--from", "kept"]) == 2
    assert "give one of them" in capsys.readouterr().err


def test_the_report_on_an_openpai_file_takes_the_secrets_of_its_job(
    server: Server, masked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["openpai", "check", masked, "-o", "json"]) == 2
    capsys.readouterr()
    assert run(["openpai", "check", masked, "--from", "kept", "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["valid"] and told["roles"][0]["command"] == "echo <% $secrets.token %>"
    assert "hush" not in json.dumps(told)
    assert run(["openpai", "check", masked, "--from", "other", "-o", "json"]) == 2
