"""Failed sign-ins are counted before the password is checked, whatever client address the request claims."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from corral.api.client_addresses import counted_as, networks
from corral.api.rate_limits import FailureLimit
from corral.front import configuration
from corral.kernel.errors import InvalidInput, TooManyRequests
from corral.settings import Settings
from tests.api.harness import Server, serving
from tests.api.openpai_caller import PASSWORD, Pai, signed_in

GUESSES = 40
ROUTES = {
    "v3": ("/api/v3/login", "user", 401),
    "v2": ("/api/v2/authn/basic/login", "username", 400),
    "yarn era": ("/rest-server/api/v1/token", "username", 400),
}


@pytest.fixture(autouse=True)
def fresh_limit(server: Server) -> Iterator[None]:
    """Reset the limit, since all tests share the loopback address."""
    server.app.state.login_limit = FailureLimit()
    yield
    server.app.state.login_limit = FailureLimit()


def guesses(server: Server, route: str, each: Any = lambda number: {}) -> Counter[int]:
    """The statuses of many wrong sign-ins sent at once; `each` gives the extra arguments of the one with a number."""
    path, name, _ = ROUTES[route]

    async def send() -> list[int]:
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=150, limits=limits) as client:

            async def one(number: int) -> int:
                terms = {"user": "nobody", "headers": {}, **each(number)}
                body = {name: terms["user"], "password": "wrong horse"}
                return (await client.post(path, json=body, headers=terms["headers"])).status_code

            return list(await asyncio.gather(*(one(number) for number in range(GUESSES))))

    return Counter(asyncio.run(send()))


@pytest.mark.parametrize("route", ROUTES)
def test_of_guesses_sent_at_once_ten_are_checked(server: Server, route: str) -> None:
    assert guesses(server, route) == {ROUTES[route][2]: 10, 429: GUESSES - 10}


def test_an_address_has_ten_guesses_whatever_accounts_it_tries(server: Server) -> None:
    assert guesses(server, "v3", lambda number: {"user": f"user{number}"}) == {401: 10, 429: GUESSES - 10}


def test_a_forwarded_address_is_believed_from_nobody_by_default(server: Server) -> None:
    found = guesses(server, "v3", lambda n: {"user": f"user{n}", "headers": {"x-forwarded-for": f"192.0.2.{n}"}})
    assert found == {401: 10, 429: GUESSES - 10}


def test_a_named_proxy_says_whose_call_it_is(tmp_path: Path) -> None:
    def behind(server: Server) -> None:
        server.settings = {"trusted_proxies": "10.0.0.0/8, 127.0.0.1"}

    with serving(tmp_path, behind) as server:
        login = f"{server.url}/api/v3/login"

        def status(address: str, user: str) -> int:
            headers = {"x-forwarded-for": address}
            body = {"user": user, "password": "wrong horse"}
            return httpx2.post(login, json=body, headers=headers, trust_env=False, timeout=150).status_code

        for number in range(10):
            assert status("192.0.2.9, 192.0.2.1, 10.1.1.1", f"user{number}") == 401
        assert status("192.0.2.8, 192.0.2.1", "another") == 429  # addresses that the client put in front are ignored
        assert status("192.0.2.2", "another") == 401


def test_a_success_forgives_the_account_and_not_the_address(server: Server) -> None:
    signed_in(server, "careful")
    login = f"{server.url}/api/v3/login"
    right, wrong = {"user": "careful", "password": PASSWORD}, {"user": "careful", "password": "wrong horse"}

    def status(body: dict[str, str]) -> int:
        return httpx2.post(login, json=body, trust_env=False, timeout=150).status_code

    assert [status(body) for body in (*[wrong] * 9, right, wrong, right)] == [401] * 9 + [200, 401, 429]


def test_the_old_password_is_not_guessed_with_a_session(server: Server) -> None:
    guessed = signed_in(server, "session")
    change = {"oldPassword": "wrong horse", "newPassword": "another horse"}
    statuses = [guessed.refused("PUT", "/api/v2/users/session/password", json=change)[0] for _ in range(11)]
    assert statuses == [403] * 10 + [429]


def test_people_who_sign_in_at_once_wait_for_each_other() -> None:
    limit, most, now = FailureLimit(2), 0, 0

    async def sign_in() -> None:
        nonlocal most, now
        async with limit.attempt("address:192.0.2.1") as attempt:
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1
            attempt.right()

    async def all_of_them() -> None:
        await asyncio.gather(*(sign_in() for _ in range(20)))

    asyncio.run(all_of_them())
    assert most == 2


def test_a_sign_in_that_is_broken_off_counts() -> None:
    limit = FailureLimit(1)

    async def broken_off() -> None:
        with pytest.raises(asyncio.CancelledError):
            async with limit.attempt("user:ann"):
                raise asyncio.CancelledError
        with pytest.raises(TooManyRequests):
            async with limit.attempt("user:ann"):
                pass

    asyncio.run(broken_off())


def test_a_customers_whole_ipv6_network_is_one_address() -> None:
    assert counted_as("2001:db8:1:2:3::4") == counted_as("2001:db8:1:2:ffff::1") == "2001:db8:1:2::/64"
    assert counted_as("::ffff:192.0.2.1") == counted_as("192.0.2.1") == "192.0.2.1"


def test_a_proxy_that_is_no_address_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for wrong in ("*", "proxy.example.org", "10.0.0.0/99"):
        with pytest.raises(InvalidInput, match="trusted_proxies"):
            configuration(lambda *_: None, Settings(data_folder=tmp_path, trusted_proxies=wrong))  # type: ignore[arg-type,return-value]
    assert len(networks(["10.0.0.1", "2001:db8::/32"])) == 3


def test_a_variable_of_the_web_server_makes_nobody_believed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    made = configuration(lambda *_: None, Settings(data_folder=tmp_path))  # type: ignore[arg-type,return-value]
    assert not made.proxy_headers and made.forwarded_allow_ips == []


def test_an_anonymous_reader_is_counted_by_the_same_address(server: Server) -> None:
    pai = Pai(server.url)
    calls = server.app.state.openpai_calls
    server.app.state.openpai_anonymous_reads = True
    try:
        pai.call("GET", "/api/v1/jobs", headers={"x-forwarded-for": "192.0.2.77"})
        assert not [key for key in calls._all._seen if "192.0.2.77" in key]
    finally:
        server.app.state.openpai_anonymous_reads = False
