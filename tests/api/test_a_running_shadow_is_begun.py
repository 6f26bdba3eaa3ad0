"""A candidate goes on beside the policy in force over the API: administrators begin it, read its report, and stop it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from corral.client import AsyncClient
from corral.kernel.errors import Conflict, CorralError, NotFound
from tests.api.harness import Server
from tests.api.idle_scheduler import IdleScheduler

PATH = "/api/v3/running-shadow"
QUEUE = "kind: Queue\nname: default\nlimit: {devices: 4}\n"


@pytest.fixture(autouse=True)
def scheduler(server: Server) -> Iterator[IdleScheduler]:
    """A control of its own, on which no shadow runs."""
    before = server.service.context.control
    made = server.service.context.control = IdleScheduler(server.service.context.clock)
    yield made
    server.service.context.control = before


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    """HTTP with a token of the administrator."""
    with _http(server, "root") as made:
        yield made


def _http(server: Server, user: str) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {server.token(user)}"}
    return httpx2.Client(base_url=server.url, headers=headers, trust_env=False, timeout=120)


def test_it_is_begun_read_and_stopped_and_the_audit_log_says_who_did(
    server: Server, http: httpx2.Client, scheduler: IdleScheduler
) -> None:
    for path in (PATH, f"{PATH}/report"):
        assert (http.get(path).status_code, http.get(path).json()["code"]) == (404, "no-running-shadow")
    assert http.post(f"{PATH}/stop").status_code == 404
    begun = http.post(PATH, json={"policy": "srtf", "documents": QUEUE, "hours": 24, "differences": 3})
    assert begun.status_code == 201
    assert (begun.json()["state"], begun.json()["user"]) == ("running", "root")
    assert begun.json()["candidate"] == "srtf with other documents"
    assert scheduler.shadow is not None
    question = scheduler.shadow.question
    assert question.until is not None and question.until - question.since == 24 * 3600 and question.differences == 3
    assert question.documents is not None and '"kind":"Queue"' in question.documents[0]
    assert http.get(PATH).json() == begun.json()
    assert http.get(f"{PATH}/report").json()["total"]["inForce"]["started"] == 2
    assert http.post(f"{PATH}/stop").json()["state"] == "stopped"
    assert http.get(f"{PATH}/report").status_code == 200
    lines = [each for each in http.get("/api/v3/audit?limit=50").json()["items"] if each["action"] == "policy.shadow"]
    assert {("begins" in each["detail"], "stops" in each["detail"]) for each in lines} >= {(True, False), (False, True)}


def test_only_administrators_may_begin_read_and_stop_it(server: Server, http: httpx2.Client) -> None:
    assert http.post(PATH, json={"policy": "srtf"}).status_code == 201
    calls = (("POST", PATH), ("GET", PATH), ("GET", f"{PATH}/report"), ("POST", f"{PATH}/stop"))
    with _http(server, "alice") as alice:
        for method, path in calls:
            refused = alice.request(method, path, json={"policy": "srtf"} if method == "POST" else None)
            assert (refused.status_code, refused.json()["code"]) == (403, "not-allowed"), (method, path)
    with httpx2.Client(base_url=server.url, trust_env=False, timeout=120) as stranger:
        assert {stranger.request(*each).status_code for each in calls} == {401}
    assert http.get(PATH).json()["state"] == "running"


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({}, "no-candidate", "a policy, such as `srtf`, or documents"),
        ({"policy": "x" * 201}, "bad-policy", "at most 200 characters"),
        ({"policy": "srtf", "within": 86_401}, "bad-within", "0 seconds to 1 day"),
        ({"policy": "srtf", "differences": -1}, "bad-differences", "0 to 10000"),
        ({"policy": "srtf", "hours": 0.5}, "bad-hours", "for 1 to 336 hours"),
        ({"policy": "srtf", "hours": 337}, "bad-hours", "for 1 to 336 hours"),
        ({"policy": "srtf", "since": "noon"}, "no-time", "since is a time such as"),
        ({"policy": "srtf", "since": "2999-01-01"}, "bad-times", "in the future"),
        ({"policy": "srtf", "since": "1999-01-01"}, "bad-times", "more than `hours` ago"),
        ({"policy": "srtf", "until": ""}, None, "until"),
        ({"documents": "{kind: Queue, name: q, weigth: 2}"}, None, "weigth"),
    ],
)
def test_what_is_beyond_its_bounds_is_refused(
    http: httpx2.Client, scheduler: IdleScheduler, given: dict[str, Any], code: str | None, says: str
) -> None:
    refused = http.post(PATH, json=given)
    assert refused.status_code in (400, 422) and says in refused.text
    assert code in (None, refused.json()["code"]) and scheduler.shadow is None


async def test_both_clients_begin_read_and_stop_it(server: Server) -> None:
    def ask() -> tuple[Any, Any]:
        with server.client("root") as root:
            with pytest.raises(NotFound):
                root.running_shadow_report()
            begun = root.begin_running_shadow(policy="srtf", hours=2)
            with pytest.raises(Conflict, match="stop it first"):
                root.begin_running_shadow(policy="las")
            return begun, root.running_shadow_report()

    begun, report = await asyncio.to_thread(ask)
    token = await asyncio.to_thread(server.token, "root")
    async with AsyncClient(server.url, token) as client:
        assert await client.running_shadow() == begun
        assert await client.running_shadow_report() == report
        assert (await client.stop_running_shadow())["state"] == "stopped"
        assert (await client.begin_running_shadow(policy="las"))["state"] == "running"


def test_what_control_refuses_is_refused_with_its_sentence(
    server: Server, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any, **__: Any) -> Any:
        raise CorralError("policy-unknown", "There is no policy 'nope'.")

    monkeypatch.setattr(server.service.context.control, "request", refuse)
    refused = http.post(PATH, json={"policy": "nope"})
    assert (refused.status_code, refused.json()["code"]) == (400, "policy-unknown")
