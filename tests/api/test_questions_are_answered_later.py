"""A what-if question with `Prefer: respond-async`: 202, its progress as events, its answer, and its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from corral.api.stream_limits import StreamCaps, Streams
from corral.client import Client
from corral.kernel.errors import Forbidden
from corral.kernel.ids import JobId
from corral.kernel.tokens import mint_job_token
from corral.service.service import Service
from tests.api.harness import START, Server
from tests.api.test_jobs_are_submitted_and_read import job
from tests.api.test_work_ends_with_its_caller import sent, until
from tests.service.test_questions_are_answered_later import Playing

LATER = {"Prefer": "respond-async"}
WHAT_IF = "/api/v3/what-if"


class Held:
    """A server whose control plays until `go_on`, called from the test's thread."""

    def __init__(self, server: Server, control: Playing) -> None:
        self.server = server
        self.control = control

    def go_on(self) -> None:
        """Have control answer every question."""
        self.server.loop.call_soon_threadsafe(self.control.go_on.set)

    def http(self, user: str) -> httpx2.Client:
        """HTTP with a token of this user."""
        headers = {"Authorization": f"Bearer {self.server.token(user)}"}
        return httpx2.Client(base_url=self.server.url, headers=headers, trust_env=False, timeout=120)


@pytest.fixture
def held(server: Server) -> Iterator[Held]:
    """The server of the module, with a control that holds its answers."""

    async def playing() -> Playing:
        return Playing()

    service: Service = server.service
    before, service.context.control = service.context.control, server.call(playing())
    control: Any = service.context.control
    yield Held(server, control)
    server.call(service.kept_questions._close())
    service.context.control = before


def events(answer: httpx2.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a stream, each with its data."""
    kind = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: "):
            yield kind, json.loads(line[6:])


def test_a_question_is_taken_on_and_answered_at_its_location(held: Held) -> None:
    with held.http("alice") as http:
        taken = http.post(WHAT_IF, json={}, headers=LATER)
        assert (taken.status_code, taken.headers["preference-applied"]) == (202, "respond-async")
        where = taken.headers["location"]
        assert where == f"{WHAT_IF}/{taken.json()['id']}" and taken.json()["state"] == "running"
        assert http.get(where).json()["answer"] is None
        with http.stream("GET", f"{where}/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            seen = events(stream)
            assert next(seen)[0] == "running"
            held.go_on()
            last = list(seen)[-1]
        assert last[0] == last[1]["state"] == "done" and last[1]["answer"] is None
        told = http.get(where).json()
        assert told["answer"] == http.post(WHAT_IF, json={}).json()
        assert [each["id"] for each in http.get(WHAT_IF).json()["items"]] == [told["id"]]
        assert http.delete(where).status_code == 204
        assert http.get(where).json()["code"] == "question-not-found"


@pytest.mark.parametrize(
    ("prefer", "status"),
    [("wait=10, Respond-Async; of=it", 202), ("respond-async", 202), ("respond", 200), ("", 200), ("x" * 501, 422)],
)
def test_preferences_are_read_as_their_standard_says(held: Held, prefer: str, status: int) -> None:
    held.go_on()
    with held.http("alice") as http:
        assert http.post(WHAT_IF, json={}, headers={"Prefer": prefer}).status_code == status
        until(lambda: all(each["state"] == "done" for each in http.get(WHAT_IF).json()["items"]))


def test_others_neither_see_nor_cancel_it(held: Held) -> None:
    with held.http("alice") as alice, held.http("bob") as bob, held.http("root") as root:
        where = alice.post(WHAT_IF, json={}, headers=LATER).headers["location"]
        for other in (bob, root):
            for method, path in (("GET", where), ("DELETE", where), ("GET", f"{where}/events")):
                refused = other.request(method, path)
                assert (refused.status_code, refused.json()["code"]) == (404, "question-not-found")
            assert other.get(WHAT_IF).json()["items"] == []
        assert alice.get(where).json()["state"] == "running"
        assert alice.get(f"{WHAT_IF}/../../etc").status_code == 404
        assert alice.get(f"{WHAT_IF}/{'x' * 32}").status_code == 422


def test_its_cancelling_ends_its_streams(held: Held) -> None:
    with held.http("alice") as http:
        where = http.post(WHAT_IF, json={}, headers=LATER).headers["location"]
        until(held.control.begun.is_set)
        with http.stream("GET", f"{where}/events") as stream:
            seen = events(stream)
            next(seen)
            with held.http("alice") as other:  # a second sign-in of the same user
                assert other.delete(where).status_code == 204
            assert [kind for kind, _ in seen][-1] == "cancelled"
        until(lambda: held.control.cancelled == 1)


def test_its_streams_are_counted_with_the_other_streams_of_events(held: Held, server: Server) -> None:
    before, server.app.state.streams = server.app.state.streams, Streams(StreamCaps(events=1))
    try:
        with held.http("alice") as http, held.http("alice") as other:
            where = http.post(WHAT_IF, json={}, headers=LATER).headers["location"]
            with http.stream("GET", f"{where}/events") as stream:
                seen = events(stream)
                next(seen)
                refused = other.get(f"{where}/events")
                assert (refused.status_code, refused.json()["code"]) == (429, "too-many-streams")
    finally:
        server.app.state.streams = before


def _disable(root: Client, name: str) -> None:
    root.change_user(name, disabled=True)


def _delete(root: Client, name: str) -> None:
    root.delete_user(name)


@pytest.mark.parametrize("end", [_disable, _delete], ids=lambda end: end.__name__.strip("_"))
def test_a_question_and_its_streams_end_with_the_account(
    held: Held, root: Client, end: Callable[[Client, str], None]
) -> None:
    name = f"asks-{end.__name__.strip('_')}"
    with held.http(name) as http:
        where = http.post(WHAT_IF, json={}, headers=LATER).headers["location"]
        until(held.control.begun.is_set)
        with http.stream("GET", f"{where}/events") as stream:
            pieces = stream.iter_raw()
            next(pieces)
            end(root, name)
            try:
                rest = b"".join(pieces)
            except httpx2.RemoteProtocolError:
                rest = b""
        assert b"event: done" not in rest
    until(lambda: held.control.cancelled == 1)
    until(lambda: not held.server.service.kept_questions._kept)


def test_a_tasks_token_asks_nothing(held: Held, alice: Client) -> None:
    made = alice.submit(job("asking"))
    with Client(
        held.server.url, mint_job_token(held.server.service.context.key, JobId(made["id"]), START + 1000)
    ) as inside:
        with pytest.raises(Forbidden):
            inside.what_if()
    with held.http("alice") as http:
        headers = {"Authorization": f"Bearer {inside.token}"}
        assert http.post(WHAT_IF, json={}, headers={**headers, **LATER}).status_code == 403
        assert http.get(WHAT_IF, headers=headers).status_code == 403


def test_a_caller_that_leaves_ends_what_it_waited_for(held: Held) -> None:
    token = held.server.token("leaving")
    with sent(held.server, token, "POST", WHAT_IF, b"{}"):
        until(held.control.begun.is_set)
    until(lambda: held.control.cancelled == 1)
    with held.http("leaving") as http:
        held.go_on()
        assert http.post(WHAT_IF, json={}).status_code == 200  # the place of its user is free


def test_a_caller_that_leaves_a_stream_leaves_the_question(held: Held) -> None:
    with held.http("alice") as http:
        where = http.post(WHAT_IF, json={}, headers=LATER).headers["location"]
        with http.stream("GET", f"{where}/events") as stream:
            next(events(stream))
        held.go_on()
        until(lambda: http.get(where).json()["state"] == "done")
