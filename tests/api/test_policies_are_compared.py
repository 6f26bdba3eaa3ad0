"""A candidate policy is compared over the API: taken on, answered later, for administrators only, and within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from corral.client import AsyncClient
from corral.kernel.errors import CorralError, InvalidInput, NotFound
from corral.service.control_client import NoControl
from tests.api.harness import Server
from tests.api.idle_scheduler import IdleScheduler
from tests.api.test_questions_are_answered_later import events
from tests.api.test_work_ends_with_its_caller import until

SHADOW = "/api/v3/policy-shadow"
QUEUE = "kind: Queue\nname: default\nlimit: {devices: 4}\n"


@pytest.fixture(autouse=True)
def scheduler(server: Server) -> Iterator[None]:
    """A control that compares with a journal of two jobs."""
    before = server.service.context.control
    server.service.context.control = IdleScheduler(server.service.context.clock)
    yield
    server.service.context.control = before


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    """HTTP with a token of the administrator."""
    with _http(server, "root") as made:
        yield made


@pytest.fixture
def refusing(server: Server) -> Iterator[Any]:
    """Have control refuse comparisons with an error of this code."""
    before = server.service.context.control

    class Refusing(NoControl):
        code = ""

        async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
            if path.partition("?")[0] == "/policy-shadow":
                raise CorralError(self.code, "This server says why.")
            return await before.request(path, body, seconds=seconds)

    made = server.service.context.control = Refusing()
    yield made
    server.service.context.control = before


def _http(server: Server, user: str) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {server.token(user)}"}
    return httpx2.Client(base_url=server.url, headers=headers, trust_env=False, timeout=120)


def _done(http: httpx2.Client, where: str) -> dict[str, Any]:
    until(lambda: http.get(where).json()["state"] != "running")
    told: dict[str, Any] = http.get(where).json()
    return told


def test_it_is_taken_on_and_answered_at_its_location(http: httpx2.Client) -> None:
    taken = http.post(SHADOW, json={"policy": "srtf", "documents": QUEUE})
    where = taken.headers["location"]
    assert taken.status_code == 202 and where == f"{SHADOW}/{taken.json()['id']}"
    with http.stream("GET", f"{where}/events") as stream:
        last = list(events(stream))[-1]
    assert last[0] == last[1]["state"] == "done" and last[1]["answer"] is None
    report = _done(http, where)["answer"]
    assert report["total"]["inForce"]["started"] == 2 and report["problem"] == ""
    assert [each["state"] for each in http.get(SHADOW).json()["items"]] == ["done"]
    assert http.get("/api/v3/what-if").json()["items"] == [], "a what-if question is of another kind"
    assert http.delete(where).status_code == 204 and http.get(where).status_code == 404


def test_only_administrators_may_ask(server: Server, http: httpx2.Client) -> None:
    where = http.post(SHADOW, json={"policy": "srtf"}).headers["location"]
    with _http(server, "alice") as alice:
        for method, path in (("POST", SHADOW), ("GET", SHADOW), ("GET", where), ("DELETE", where)):
            refused = alice.request(method, path, json={"policy": "srtf"} if method == "POST" else None)
            assert (refused.status_code, refused.json()["code"]) == (403, "not-allowed"), (method, path)
            assert "compare a policy with the one in force" in refused.json()["message"]
        assert alice.get(f"{where}/events").status_code == 403
    with httpx2.Client(base_url=server.url, trust_env=False, timeout=120) as stranger:
        assert stranger.post(SHADOW, json={"policy": "srtf"}).status_code == 401
        assert stranger.get(where).status_code == 401
    assert _done(http, where)["state"] == "done"


@pytest.mark.parametrize(
    ("asked", "code", "says"),
    [
        ({}, "no-candidate", "a policy, such as `srtf`, or documents"),
        ({"policy": "x" * 201}, "bad-policy", "at most 200 characters"),
        ({"policy": "srtf", "within": -1}, "bad-within", "0 seconds to 1 day"),
        ({"policy": "srtf", "within": 86_401}, "bad-within", "0 seconds to 1 day"),
        ({"policy": "srtf", "differences": 10_001}, "bad-differences", "0 to 10000"),
        ({"policy": "srtf", "differences": -1}, "bad-differences", "0 to 10000"),
        ({"policy": "srtf", "since": "noon"}, "no-time", "since is a time such as"),
        ({"policy": "srtf", "until": "9" * 5000}, "no-time", "until is a time such as"),
        (
            {"policy": "srtf", "since": "2026-11-27T10:00:00Z", "until": "2026-11-27T10:00:00Z"},
            "bad-times",
            "ends after it begins",
        ),
        ({"policy": "srtf", "sinse": ""}, None, "sinse"),
    ],
)
def test_what_is_beyond_its_bounds_is_refused_at_once(
    http: httpx2.Client, asked: dict[str, Any], code: str | None, says: str
) -> None:
    refused = http.post(SHADOW, json=asked)
    assert refused.status_code in (400, 422) and says in refused.json()["message"]
    assert code in (None, refused.json()["code"]) and len(refused.content) < 1000


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        ("{kind: Queue, name: q, weigth: 2}", "weigth"),
        (f"{QUEUE}---\n{QUEUE}", "Queue/default is already there"),
        ("{kind: Queue, name: q, parent: nobody}", "nobody"),
    ],
)
def test_documents_that_are_not_valid_are_its_error(server: Server, documents: str, says: str) -> None:
    with server.client("root") as root, pytest.raises(CorralError, match=says) as refused:
        root.follow_policy_shadow(documents=documents)
    assert refused.value.status < 500


@pytest.mark.parametrize(
    ("code", "kind"), [("no-journal", NotFound), ("nothing-since", NotFound), ("policy-unknown", InvalidInput)]
)
def test_a_server_without_such_a_journal_says_so(
    server: Server, refusing: Any, code: str, kind: type[CorralError]
) -> None:
    refusing.code = code
    with server.client("root") as root, pytest.raises(kind, match="says why"):
        root.follow_policy_shadow(policy="srtf")


async def test_both_clients_return_the_report(server: Server) -> None:
    def follow() -> Any:
        with server.client("root") as root:
            return root.follow_policy_shadow(policy="srtf", within=5.0)

    told = await asyncio.to_thread(follow)
    token = await asyncio.to_thread(server.token, "root")
    async with AsyncClient(server.url, token) as client:
        assert await client.follow_policy_shadow(policy="srtf", within=5.0) == told
