"""Log URLs of OpenPAI's API are opened without a token; each opens one log and expires."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from corral.kernel.ids import AttemptId
from corral.model.states import JobState
from tests.api.harness import START, Server
from tests.api.openpai_jobs import Caller, Launcher, calling, history, protocol, refused, running

ROLE = "task-role"


@pytest.fixture(scope="module")
def launcher(server: Server) -> Launcher:
    return Launcher(server)


@pytest.fixture
def ann(server: Server) -> Iterator[Caller]:
    with calling(server, "ann") as caller:
        yield caller


def printing(
    server: Server, launcher: Launcher, caller: Caller, name: str, *, split: bool
) -> tuple[str, tuple[str, str]]:
    """A running job: the URL of its task's logs, and the files of its output."""
    assert caller.submit(protocol(name)).status_code == 202
    record = launcher.record("ann", name)
    task = running(ROLE, 0, START)
    launcher.write(
        "ann", name, {(ROLE, 0): task}, attempts=(history(record.id, task),), state=JobState.RUNNING, started_at=START
    )
    files = server.logs.prepare(AttemptId(f"{record.id}.0.{ROLE}.0.0"), split=split)
    return f"/api/v2/jobs/ann~{name}/attempts/0/taskRoles/Task_Role/taskIndex/0/attempts/0/logs", files


def opened(uri: str) -> httpx2.Response:
    """The answer at a URL for a caller without a token."""
    return httpx2.get(uri, trust_env=False)


def places(caller: Caller, where: str, **query: str) -> dict[str, str]:
    return {each["name"]: each["uri"] for each in caller.get(where, **query)["locations"]}


def test_every_stream_is_read_at_its_address_without_a_token(server: Server, launcher: Launcher, ann: Caller) -> None:
    where, (out, err) = printing(server, launcher, ann, "Prints", split=True)
    Path(out).write_bytes(b"to stdout\n")
    Path(err).write_bytes(b"to stderr\n")
    found = places(ann, where)
    assert set(found) == {"stdout", "stderr", "all"}
    assert [opened(found[name]).text for name in ("stdout", "stderr", "all")] == [
        "to stdout\n",
        "to stderr\n",
        "to stdout\nto stderr\n",
    ]
    assert opened(found["all"]).headers["content-type"].startswith("text/plain")


def test_whoever_comes_through_the_gateway_is_sent_through_it(server: Server, launcher: Launcher, ann: Caller) -> None:
    where, (out, _) = printing(server, launcher, ann, "Prints-behind", split=False)
    Path(out).write_bytes(b"behind\n")
    uri = places(ann, f"/rest-server{where}")["all"]
    assert urlsplit(uri).path == "/rest-server/api/internal/logs/user-all"
    assert opened(uri).text == "behind\n"


def test_a_task_that_prints_into_one_file_has_it_at_every_address(
    server: Server, launcher: Launcher, ann: Caller
) -> None:
    where, (out, _) = printing(server, launcher, ann, "Prints-once", split=False)
    Path(out).write_bytes(b"both\n")
    assert [opened(uri).text for uri in places(ann, where).values()] == ["both\n"] * 3


@pytest.mark.parametrize("parameter", ["tail-mode", "tailMode"])
def test_in_tail_mode_the_end_of_a_log_is_served(
    server: Server, launcher: Launcher, ann: Caller, parameter: str
) -> None:
    where, (out, _) = printing(server, launcher, ann, f"Prints-much-{parameter}", split=False)
    written = b"".join(b"line %06d\n" % number for number in range(10_000))
    Path(out).write_bytes(written)
    uri = places(ann, where, **{parameter: "true"})["all"]
    assert urlsplit(uri).path == "/api/internal/tail-logs/user-all"
    assert opened(uri).content == written[-16 * 1024 :]
    assert opened(places(ann, where)["all"]).content == written


def test_an_address_holds_no_token_and_opens_nothing_else_and_not_for_ever(
    server: Server, launcher: Launcher, ann: Caller
) -> None:
    where, (out, _) = printing(server, launcher, ann, "Guarded", split=True)
    Path(out).write_bytes(b"secret\n")
    uri = places(ann, where)["stdout"]
    token = ann.http.headers["Authorization"].removeprefix("Bearer ")
    assert token not in uri
    asked = {name: values[0] for name, values in parse_qs(urlsplit(uri).query).items()}
    assert asked["username"] == "ann" and asked["taskrole"] == "Task_Role"
    base = uri.partition("?")[0]

    def changed(**change: Any) -> httpx2.Response:
        return httpx2.get(base, params={**asked, **change}, trust_env=False)

    assert changed().text == "secret\n"
    words = "Your token is invalid."
    other = AttemptId(asked["pod-uid"][:-1] + "1")
    for change in ({"pod-uid": other}, {"expires": "99999999999"}, {"signature": "0" * 64}, {"signature": "ä"}):
        refused(changed(**change), 401, "UnauthorizedUserError", words)
    refused(opened(base.replace("stdout", "stderr") + "?" + urlsplit(uri).query), 401, "UnauthorizedUserError", words)
    refused(opened(base), 401, "UnauthorizedUserError", words)
    server.clock.advance(3601)
    refused(changed(), 401, "UnauthorizedUserError", words)


def test_everybody_who_signed_in_reads_an_openpai_job_and_only_its_owner_another(
    server: Server, launcher: Launcher, ann: Caller
) -> None:
    where, (out, _) = printing(server, launcher, ann, "Shared", split=False)
    Path(out).write_bytes(b"for all\n")
    with server.client("ann") as client:
        client.submit('{"name": "closed", "framework": "shell", "roles": {"worker": {"command": "true"}}}')
    with calling(server, "bert") as other:
        assert opened(places(other, where)["all"]).text == "for all\n"
        closed = "/api/v2/jobs/ann~closed/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"
        words = "User bert is not allowed to do operation on job ann~closed."
        refused(other.http.get(closed), 403, "ForbiddenUserError", words)


def test_a_task_that_never_ran_has_no_log(server: Server, launcher: Launcher, ann: Caller) -> None:
    where, _ = printing(server, launcher, ann, "Silent", split=False)
    words = "Log of task is not found."
    for absent in ("attempts/1/taskRoles", "attempts/x/taskRoles"):
        refused(ann.http.get(where.replace("attempts/0/taskRoles", absent)), 404, "NoTaskLogError", words)
    for absent in ("taskIndex/7/", "taskIndex/-1/"):
        refused(ann.http.get(where.replace("taskIndex/0/", absent)), 404, "NoTaskLogError", words)
    refused(ann.http.get(where.replace("Task_Role", "nobody")), 404, "NoTaskLogError", words)
    refused(ann.http.get(where.replace("attempts/0/logs", "attempts/9/logs")), 404, "NoTaskLogError", words)
    assert opened(places(ann, where)["all"]).text == ""


def test_in_version_1_the_name_of_a_log_is_appended_to_where_it_is(
    server: Server, launcher: Launcher, ann: Caller
) -> None:
    _, (out, err) = printing(server, launcher, ann, "Prints-v1", split=True)
    Path(out).write_bytes(b"to stdout\n")
    Path(err).write_bytes(b"to stderr\n")
    for gateway in ("", "/rest-server"):
        (task,) = ann.get(f"{gateway}/api/v1/jobs/Prints-v1")["taskRoles"]["Task_Role"]["taskStatuses"]
        folder = task["containerLog"]
        assert folder.startswith(f"{server.url}{gateway}/api/internal/logs/") and folder.endswith("/")
        assert opened(f"{folder}user.pai.stdout").text == "to stdout\n"
        assert opened(f"{folder}user.pai.stderr").text == "to stderr\n"
        assert opened(f"{folder}user.pai.all").text == opened(folder).text == "to stdout\nto stderr\n"
        assert opened(f"{folder}user.pai.none").status_code == 404
        other = folder.replace(".0.0/", ".0.1/")
        assert other != folder and opened(f"{other}user.pai.stdout").status_code == 401
        head, expires, signature, _ = folder.rsplit("/", 3)
        assert opened(f"{head}/{int(expires) + 1}/{signature}/user.pai.stdout").status_code == 401
