"""Two calls have a fast path beside the general route; both must give the same answers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx2
import pytest

from tests.api.harness import Server

GENERAL = "waitForCapacity=false"
"""A query without effect that makes a call skip the fast path."""


@pytest.fixture(scope="module")
def http(server: Server) -> Iterator[httpx2.Client]:
    """A signed-in client that shows whole responses."""
    headers = {"Authorization": f"Bearer {server.token('plain')}"}
    with httpx2.Client(base_url=server.url, headers=headers, trust_env=False) as client:
        yield client


def job(name: str) -> str:
    return json.dumps({"name": name, "framework": "shell", "roles": {"worker": {"command": "true"}}})


def comparable(answer: httpx2.Response) -> tuple[int, dict[str, str], object]:
    """Status, headers and body without the parts that differ between jobs or seconds."""
    body = answer.json()
    own = str(body.get("id", "no id"))
    own_to_each = ("content-length", "date")
    headers = {name: value.replace(own, "ID") for name, value in answer.headers.items() if name not in own_to_each}
    text = json.dumps({**body, "createdAt": "", "name": ""}).replace(own, "ID").replace("general", "plain")
    return answer.status_code, headers, json.loads(text)


def test_a_submit(http: httpx2.Client) -> None:
    plain = http.post("/api/v3/jobs", content=job("plain"))
    general = http.post(f"/api/v3/jobs?{GENERAL}", content=job("general"))
    assert plain.status_code == 201
    assert comparable(plain) == comparable(general)


def test_a_look_at_a_job(http: httpx2.Client) -> None:
    made = http.post("/api/v3/jobs", content=job("looked-at")).json()
    for ref in (made["id"], "looked-at", "plain~looked-at"):
        plain, general = http.get(f"/api/v3/jobs/{ref}"), http.get(f"/api/v3/jobs/{ref}?{GENERAL}")
        assert plain.status_code == 200
        assert comparable(plain) == comparable(general)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "name: x", job("taken"), '{"name": 7, "rolls": {}}', b"\xff", "- " * 99]
)
def test_a_refused_submit(http: httpx2.Client, content: str | bytes) -> None:
    http.post("/api/v3/jobs", content=job("taken"))
    plain, general = (http.post(f"/api/v3/jobs{query}", content=content) for query in ("", f"?{GENERAL}"))
    assert plain.status_code >= 400
    assert comparable(plain) == comparable(general)


@pytest.mark.parametrize("path", ["/api/v3/jobs/no-such-job", "/api/v3/jobs/-bad", "/api/v3/jobs/" + "x" * 201])
def test_a_look_at_no_job(http: httpx2.Client, path: str) -> None:
    plain, general = http.get(path), http.get(f"{path}?{GENERAL}")
    assert plain.status_code >= 400
    assert comparable(plain) == comparable(general)


@pytest.mark.parametrize("authorization", ["", "Bearer", "Basic x", "Bearer crl_wrong", "Bearer " + "x" * 5000])
def test_a_call_without_a_good_token(http: httpx2.Client, authorization: str) -> None:
    for method, path in (("POST", "/api/v3/jobs"), ("GET", "/api/v3/jobs/some")):
        asked = [
            http.request(method, f"{path}{query}", content=job("x"), headers={"Authorization": authorization})
            for query in ("", f"?{GENERAL}")
        ]
        assert asked[0].status_code == 401
        assert comparable(asked[0]) == comparable(asked[1])


def test_a_key_is_still_honoured(http: httpx2.Client) -> None:
    first, again = (http.post("/api/v3/jobs", content=job("keyed"), headers={"Idempotency-Key": "k"}) for _ in "12")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
