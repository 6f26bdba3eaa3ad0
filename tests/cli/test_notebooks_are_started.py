"""`corral notebook` writes a job file of what was chosen, and waits until the notebook runs or has ended."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import click
import pytest

from corral.cli.notebook import await_answer, await_run, document_of
from corral.kernel.errors import Conflict, Unavailable
from corral.spec.job_reader import load_job

NOTHING: Any = {
    "name": "lab", "image": "", "environment": "", "devices": 0, "model": "", "cpu": "2", "memory": "", "idle": "1h",
    "queue": "",
}  # fmt: skip


def test_nothing_that_was_not_chosen_is_written() -> None:
    role = {"resources": {"cpu": "2"}}
    assert document_of("", **NOTHING) == {"name": "lab", "framework": "notebook", "idle": "1h", "roles": {"main": role}}
    assert "idle" not in document_of("", **{**NOTHING, "idle": "0"})


@pytest.mark.parametrize(
    ("folder", "storages", "directory"),
    [
        ("", [], ""),
        ("/data/lab", [], "/data/lab"),
        ("home", ["home"], "/mnt/home"),
        ("home/a/", ["home"], "/mnt/home/a"),
    ],
)
def test_a_folder_is_a_path_or_one_of_a_storage(folder: str, storages: list[str], directory: str) -> None:
    asked = {**NOTHING, "environment": "/opt/torch/", "devices": 1, "memory": "8Gi", "queue": "research"}
    job = load_job(json.dumps(document_of(folder, **asked)), filename="job.yaml")
    (role,) = job.spec.roles
    assert ([use.name for use in job.spec.storages], role.working_dir) == (storages, directory)
    assert role.env["PATH"].startswith("/opt/torch/bin:") and role.resources.devices.count == 1
    assert (job.spec.idle_seconds, job.spec.queue, job.spec.job_type) == (3600, "research", "notebook")


def test_an_image_beside_an_environment_is_refused() -> None:
    with pytest.raises(click.UsageError, match="not both"):
        document_of("", **{**NOTHING, "image": "org/lab", "environment": "/opt/torch"})


def job(state: str, code: int | None = None) -> Any:
    """A job as the API shows it."""
    end = None if code is None else {"code": code, "phrase": "CommandNotFound", "class": "unknown", "message": ""}
    return {"id": "j1", "name": "lab", "state": state, "jobType": "notebook", "tasks": {"running": 0}, "exit": end}


class Stream:
    """A connection to a port that answers with `answer`."""

    def __init__(self, answer: list[bytes]) -> None:
        self._answer = answer

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None: ...

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._answer)

    def send(self, data: bytes) -> None:
        assert data.startswith(b"GET / ")


class Server:
    """The part of a client that waits for a notebook: what each connection meets, and the job's state after it."""

    def __init__(self, *looks: tuple[list[bytes] | None, Any]) -> None:
        self.looks = list(looks)

    def reach(self, ref: str, role: str, index: int, port: str) -> Stream:
        assert (ref, role, index, port) == ("j1", "main", 0, "notebook")
        answer = self.looks[0][0]
        if answer is None:
            raise Unavailable("exec-broken", "Nothing listens.")
        return Stream(answer)

    def job(self, ref: str) -> Any:
        return self.looks.pop(0)[1]


@pytest.fixture
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.cli.notebook._LOOK_SECONDS", 0.0)


def test_a_notebook_that_ends_before_it_runs_is_told() -> None:
    with pytest.raises(Conflict, match=r"lab has ended \(failed\); see corral logs j1"):
        await_run(None, job("failed"))  # type: ignore[arg-type]


@pytest.mark.usefixtures("_no_pauses")
def test_the_address_waits_until_the_notebook_answers() -> None:
    server = Server((None, job("running")), ([], job("running")), ([b"HTTP/1.0 302 Found"], None))
    await_answer(server, job("running"), "notebook")  # type: ignore[arg-type]
    assert len(server.looks) == 1


@pytest.mark.usefixtures("_no_pauses")
def test_a_notebook_without_jupyter_is_told_instead_of_an_address() -> None:
    server = Server((None, job("running")), (None, job("failed", 127)))
    with pytest.raises(Conflict, match=r"failed: CommandNotFound \(127\).*Jupyter is not among its programs"):
        await_answer(server, job("running"), "notebook")  # type: ignore[arg-type]


@pytest.mark.usefixtures("_no_pauses")
def test_a_notebook_that_is_slow_is_named_with_the_way_to_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("corral.cli.notebook._ANSWER_SECONDS", -1.0)
    await_answer(Server((None, job("running"))), job("running"), "notebook")  # type: ignore[arg-type]
    assert "corral open lab opens it" in capsys.readouterr().err


class Silent:
    """A stream of a program that takes a connection and says nothing until that is closed."""

    def __init__(self) -> None:
        self._closed = threading.Event()

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, data: bytes) -> None:
        assert data.startswith(b"GET /")

    def close(self) -> None:
        self._closed.set()

    def __iter__(self) -> Iterator[bytes]:
        self._closed.wait()
        raise Unavailable("exec-broken", "The connection into the task broke; try again.")
        yield b""


@pytest.mark.usefixtures("_no_pauses")
def test_a_notebook_that_takes_a_connection_and_says_nothing_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("corral.cli.notebook._ANSWER_SECONDS", -1.0)
    monkeypatch.setattr("corral.cli.notebook._MOST_LOOK_SECONDS", 0.05)
    server = Server((None, job("running")))
    monkeypatch.setattr(server, "reach", lambda *_: Silent())
    await_answer(server, job("running"), "notebook")  # type: ignore[arg-type]
    assert "corral open lab opens it" in capsys.readouterr().err
