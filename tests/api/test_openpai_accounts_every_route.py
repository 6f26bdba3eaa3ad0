"""Every route of OpenPAI's API requires authentication, except the public ones.

There are more than a hundred routes, so all of them are tried. Those of `/api/v3` answer in Corral's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fastapi.routing import APIRoute
from httpx2 import Response

from corral.compat.openpai.routes import MOUNTS
from tests.api.harness import Server
from tests.api.openpai_caller import Pai, signed_in

OPEN = {"", "/info", "/authn/info", "/authn/basic/login"}
"""The public routes, by their path below the version."""
SIGN_IN = {("POST", "/api/v1/token"), ("POST", "/api/v2/tokens")}
GUEST = {"code": "UnauthorizedUserError", "message": "Guest is not allowed to do this operation."}
INVALID = {"code": "UnauthorizedUserError", "message": "Your token is invalid."}


def routes() -> list[tuple[str, str]]:
    """Every method and path of OpenPAI's API here."""
    found: dict[tuple[str, str], None] = {}
    for prefix, router in MOUNTS:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            for method in route.methods - {"HEAD", "OPTIONS"}:
                found[method, prefix + route.path] = None
    return sorted(found)


def asks(method: str, address: str) -> bool:
    """Whether a route must authenticate the caller."""
    below = re.sub(r"^/api/v[12]", "", address)
    public = below in OPEN or below.startswith("/authn/oidc/") or address.startswith("/api/internal/")
    return not public and (method, address) not in SIGN_IN


CLOSED = [(method, re.sub(r"\{[^}]*\}", "0", address)) for method, address in routes() if asks(method, address)]


def assert_refused(answer: Response, address: str, openpai: dict[str, str]) -> None:
    """Assert that a call was refused for want of authentication, in the words of its API."""
    assert answer.status_code == 401
    if address.startswith("/api/v3/"):
        assert answer.json()["code"] in {"not-signed-in", "token-revoked"}
    else:
        assert answer.json() == openpai


@pytest.fixture(scope="module")
def nobody(server: Server) -> Iterator[Pai]:
    caller = Pai(server.url)
    yield caller
    caller.close()


@pytest.fixture(scope="module")
def stranger(server: Server) -> Iterator[Pai]:
    ended = signed_in(server, "stranger")
    assert ended.call("DELETE", "/api/v2/authn/basic/logout").status_code == 200
    yield ended
    ended.close()


def test_there_are_as_many_routes_as_there_should_be() -> None:
    assert len(CLOSED) > 80
    assert {("GET", "/api/v2/jobs"), ("POST", "/api/v2/jobs"), ("GET", "/api/v1/kubernetes/nodes")} <= set(CLOSED)


@pytest.mark.parametrize(("method", "address"), CLOSED)
def test_nobody_gets_anywhere(nobody: Pai, method: str, address: str) -> None:
    answer = nobody.call(method, address)
    assert_refused(answer, address, GUEST)


@pytest.mark.parametrize(("method", "address"), CLOSED)
def test_a_revoked_token_gets_nowhere(stranger: Pai, method: str, address: str) -> None:
    answer = stranger.call(method, address)
    assert_refused(answer, address, INVALID)


@pytest.mark.parametrize(("method", "address"), [each for each in CLOSED if each[1].startswith("/api/")])
def test_a_token_in_the_address_or_a_cookie_is_none(stranger: Pai, nobody: Pai, method: str, address: str) -> None:
    answer = nobody.call(method, f"{address}?token={stranger.token}", headers={"cookie": f"token={stranger.token}"})
    assert_refused(answer, address, GUEST)
