"""Commands for several jobs resolve all names before they change one, and name each job that they changed."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from corral.cli.jobs import restart_command, stop_command
from corral.cli.suspend_and_drain import suspend_command
from corral.kernel.errors import Conflict, NotFound

IDS = {"one": "j1", "two": "j2", "over": "j3"}


class Server:
    """The part of a client that these commands use; it remembers which jobs it changed."""

    changed: list[str]

    def __init__(self) -> None:
        Server.changed = []

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def me(self) -> Any:
        return {"user": "ann"}

    def jobs(self, **_: Any) -> Any:
        return {"items": [], "next": None}

    def job(self, ref: str) -> Any:
        name = {id: name for name, id in IDS.items()}.get(ref, ref)
        if name not in IDS:
            raise NotFound("job-not-found", f"There is no job {ref}.")
        return {"name": name, "id": IDS[name]}

    def change(self, ref: str, **_: Any) -> Any:
        found = self.job(ref)
        if found["name"] == "over":
            raise Conflict("job-over", "over has ended already.")
        self.changed.append(found["id"])
        return found

    stop = suspend = restart = change


@pytest.fixture(autouse=True)
def _server(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("jobs", "suspend_and_drain"):
        monkeypatch.setattr(f"corral.cli.{module}.connect", Server)


@pytest.mark.parametrize("command", [stop_command, suspend_command, restart_command])
def test_a_name_that_is_not_there_changes_no_job(command: Any) -> None:
    refused = CliRunner().invoke(command, ["one", "nosuch"], standalone_mode=False)
    assert isinstance(refused.exception, NotFound) and "nosuch" in refused.exception.message
    assert not Server.changed and not refused.stderr


def test_a_job_that_was_stopped_before_a_refusal_is_named() -> None:
    refused = CliRunner().invoke(stop_command, ["one", "over", "two"], standalone_mode=False)
    assert isinstance(refused.exception, Conflict) and Server.changed == ["j1"]
    assert refused.stderr == "one (j1) is being stopped.\n"


def test_a_job_named_twice_is_changed_once() -> None:
    done = CliRunner().invoke(stop_command, ["one", "j1", "two"], standalone_mode=False)
    assert done.exception is None and Server.changed == ["j1", "j2"]
