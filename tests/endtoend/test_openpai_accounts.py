"""OpenPAI tokens outlive the server's process, and no file of the server contains them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.openpai_caller import Pai
from tests.endtoend.platform import Platform

PASSWORD = "correct horse"
INVALID = (401, "UnauthorizedUserError", "Your token is invalid.")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A server with debug logs, several trusted users and a limit of 12 OpenPAI calls a minute."""
    env = {"CORRAL_LOG_LEVEL": "debug", "CORRAL_OPENPAI_CALLS_PER_MINUTE": "12", "CORRAL_TRUST_USERS": "true"}
    made = Platform(tmp_path_factory.mktemp("server"), env=env)
    made.up()
    yield made
    made.down()


def signed_in(server: Platform, name: str) -> Pai:
    answer = Pai(server.url).call("POST", "/api/v1/token", json={"username": name, "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    return Pai(server.url, answer.json()["token"])


def with_what_is_written(folder: Path, *hidden: str) -> list[Path]:
    """The files below `folder` that contain one of these texts."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 3
    return [path for path in files if any(each.encode() in path.read_bytes() for each in hidden)]


def test_tokens_outlive_the_process_and_stand_in_no_file(server: Platform) -> None:
    server.client.create_user("Ann.1", password=PASSWORD)
    ann = signed_in(server, "Ann.1")
    program = Pai(server.url, ann.call("POST", "/api/v2/tokens/application").json()["token"])
    ended = signed_in(server, "Ann.1")
    assert ann.call("DELETE", f"/rest-server/api/v2/tokens/{ended.token}").status_code == 200
    server.corral("down", "--data", str(server.data))
    server.up_again()
    assert program.get("/api/v2/users/Ann.1")["username"] == "Ann.1"
    assert set(ann.get("/api/v2/tokens")["tokens"]) == {ann.token, program.token}
    assert ended.refused("GET", "/api/v2/users") == INVALID
    signatures = [caller.token.rpartition(".")[2] for caller in (ann, program, ended)]
    assert with_what_is_written(server.folder, "Ann.1")
    assert with_what_is_written(server.folder, *signatures, PASSWORD) == []


def test_an_administrator_chooses_how_many_calls_are_let_through(server: Platform) -> None:
    server.client.create_user("bob", password=PASSWORD)
    bob = signed_in(server, "bob")
    assert [bob.call("GET", "/api/v2/groups").status_code for _ in range(13)] == [200] * 12 + [429]
    assert {bob.call("GET", "/api/v3/jobs").status_code for _ in range(20)} == {200}
