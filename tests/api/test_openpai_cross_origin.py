"""CORS: other origins may call OpenPAI's API as OpenPAI allows, but never Corral's own; old pages redirect to new ones."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from corral.compat.openpai.routes.cors import Cors
from tests.api.harness import Server

ORIGIN = "https://other.example.org"
QUESTION = {
    "Origin": ORIGIN,
    "Access-Control-Request-Method": "PUT",
    "Access-Control-Request-Headers": "authorization,content-type",
}


def call(server: Server, method: str, path: str, headers: dict[str, str]) -> httpx2.Response:
    return httpx2.request(method, f"{server.url}{path}", headers=headers, trust_env=False)


@pytest.mark.parametrize("path", ["/api/v2/jobs", "/rest-server/api/v2/users/me", "/api/v1/token", "/api/v2/nothing"])
def test_any_origin_may_ask_and_read_without_cookies(server: Server, path: str) -> None:
    asked = call(server, "OPTIONS", path, QUESTION)
    assert asked.status_code == 204
    assert asked.headers["access-control-allow-origin"] == "*"
    assert asked.headers["access-control-allow-headers"] == "authorization,content-type"
    assert "PUT" in asked.headers["access-control-allow-methods"]
    answer = call(server, "GET", path, {"Origin": ORIGIN})
    assert answer.status_code >= 400 and answer.headers["access-control-allow-origin"] == "*"
    for each in (asked, answer):
        assert "access-control-allow-credentials" not in each.headers


@pytest.mark.parametrize("path", ["/api/v3/jobs", "/rest-server/api/v3/jobs", "/", "/healthz"])
def test_corrals_own_addresses_are_open_to_no_other_origin(server: Server, path: str) -> None:
    for method, headers in (("OPTIONS", QUESTION), ("GET", {"Origin": ORIGIN})):
        answer = call(server, method, path, headers)
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("origins", "origin", "allowed"),
    [((), ORIGIN, None), ((f"{ORIGIN}/",), ORIGIN, ORIGIN), ((ORIGIN,), "https://bad.example.org", None)],
)
async def test_a_site_says_which_origins(origins: tuple[str, ...], origin: str, allowed: str | None) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    scope = {"type": "http", "method": "GET", "path": "/api/v2/info", "headers": [(b"origin", origin.encode())]}
    await Cors(app, origins=origins)(scope, None, send)  # type: ignore[arg-type]
    found = dict(said[0]["headers"]).get(b"access-control-allow-origin")
    assert (found.decode() if found else None) == allowed
    assert ((b"vary", b"Origin") in said[0]["headers"]) == bool(origins)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/job-list.html", "/"),
        ("/job-detail.html?username=ann&jobName=Some_Name_1", "/jobs/ann~Some_Name_1"),
        ("/job-detail.html?jobName=alone", "/jobs/alone"),
        ("/job-detail.html?username=a/b&jobName=..%2F%2Fx", "/jobs/a%2Fb~..%2F%2Fx"),
        ("/job-detail.html", "/"),
    ],
)
def test_a_page_of_openpais_portal_leads_to_the_page_that_shows_it(server: Server, old: str, new: str) -> None:
    answer = call(server, "GET", old, {})
    assert (answer.status_code, answer.headers["location"]) == (302, new)
