"""OpenPAI tokens work until they expire or are revoked; an application token opens only its part of the API."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator

import pytest

from corral.api.rate_limits import FailureLimit
from corral.compat.openpai.service.errors import OpenPaiRefusal
from tests.api.harness import Server
from tests.api.openpai_caller import PASSWORD, Pai, login, signed_in

GUEST = (401, "UnauthorizedUserError", "Guest is not allowed to do this operation.")
INVALID = (401, "UnauthorizedUserError", "Your token is invalid.")
APPLICATION = (403, "ForbiddenUserError", "Applications are not allowed to do this operation.")
NOT_ADMIN = (403, "ForbiddenUserError", "Non-admin is not allow to do this operation.")
NEEDS_TOKEN = [
    ("GET", "/tokens"),
    ("POST", "/tokens/application"),
    ("DELETE", "/tokens/x"),
    ("GET", "/tokens/check"),
    ("DELETE", "/authn/basic/logout"),
    ("GET", "/users"),
    ("POST", "/users"),
    ("PUT", "/users"),
    ("PUT", "/users/me"),
    ("GET", "/users/alice"),
    ("DELETE", "/users/alice"),
    ("PUT", "/users/alice/extension"),
    ("PUT", "/users/alice/grouplist"),
    ("PUT", "/users/alice/group"),
    ("DELETE", "/users/alice/group"),
    ("PUT", "/users/alice/virtualcluster"),
    ("PUT", "/users/alice/password"),
    ("PUT", "/users/alice/email"),
    ("PUT", "/users/alice/admin"),
    ("GET", "/groups"),
    ("POST", "/groups"),
    ("PUT", "/groups"),
    ("GET", "/groups/default"),
    ("DELETE", "/groups/default"),
    ("GET", "/groups/default/userlist"),
    ("PUT", "/groups/default/extension"),
    ("PUT", "/groups/default/extension/acls/admin"),
    ("PUT", "/groups/default/description"),
    ("PUT", "/groups/default/externalname"),
]
IN_PERSON = [
    (method, path)
    for method, path in NEEDS_TOKEN
    if (method != "GET" or path == "/tokens") and path != "/authn/basic/logout"
]
FOR_ADMINISTRATORS = [
    (method, path)
    for method, path in NEEDS_TOKEN
    if ((path.startswith(("/users", "/groups")) and method != "GET") or path.endswith("userlist"))
    and not path.endswith(("/me", "/extension", "/password", "/email"))
] + [("PUT", "/groups/default/extension")]


@pytest.fixture
def alice(server: Server) -> Iterator[Pai]:
    caller = signed_in(server, "alice")
    yield caller
    caller.close()


@pytest.fixture
def root(server: Server) -> Iterator[Pai]:
    caller = signed_in(server, "root")
    yield caller
    caller.close()


def application(server: Server, caller: Pai) -> Pai:
    """A caller with an application token of this caller's."""
    made = caller.call("POST", "/api/v2/tokens/application").json()
    assert made["application"] is True
    return Pai(server.url, made["token"])


def payload(token: str) -> dict[str, object]:
    """The payload of a JWT."""
    part = token.split(".")[1]
    told = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    assert isinstance(told, dict)
    return told


@pytest.mark.parametrize(("method", "path"), NEEDS_TOKEN)
def test_nobody_gets_in_without_a_token_or_with_a_broken_one(server: Server, method: str, path: str) -> None:
    assert Pai(server.url).refused(method, f"/api/v2{path}") == GUEST
    assert Pai(server.url, "nonsense").refused(method, f"/rest-server/api/v2{path}") == INVALID


@pytest.mark.parametrize(("method", "path"), IN_PERSON)
def test_a_programs_token_does_not_open_what_is_for_people(server: Server, root: Pai, method: str, path: str) -> None:
    assert application(server, root).refused(method, f"/api/v2{path}") == APPLICATION


@pytest.mark.parametrize(("method", "path"), FOR_ADMINISTRATORS)
def test_only_administrators_manage_accounts_and_groups(server: Server, alice: Pai, method: str, path: str) -> None:
    assert alice.refused(method, f"/api/v2{path}") == NOT_ADMIN


def test_a_login_gives_a_token_that_says_whose_it_is(server: Server, alice: Pai) -> None:
    told = login(server, "alice")
    assert {**told, "token": ""} == {"user": "alice", "token": "", "admin": False, "hasGitHubPAT": False}
    said = payload(told["token"])
    assert said | {"jti": "", "iat": 0, "exp": 0} == {
        "username": "alice", "application": False, "jobSpecific": False, "encodedFrameworkName": "",
        "jti": "", "iat": 0, "exp": 0,
    }  # fmt: skip
    assert said["exp"] == server.clock.now() + 86_400
    assert login(server, "alice", expiration="3600")["token"] != told["token"]
    assert json.loads(base64.urlsafe_b64decode(told["token"].split(".")[0] + "=="))["alg"] == "HS256"


@pytest.mark.parametrize("path", ["/api/v1/token", "/api/v2/tokens", "/api/v1/authn/basic/login"])
def test_one_signs_in_at_the_old_addresses_too_by_json_as_well(server: Server, alice: Pai, path: str) -> None:
    answer = Pai(server.url).call("POST", path, json={"username": "alice", "password": PASSWORD, "expiration": 60})
    assert answer.status_code == 200 and payload(answer.json()["token"])["exp"] == server.clock.now() + 60


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"username": "alice"},
        {"username": "alice", "password": "short"},
        {"username": "al ice", "password": PASSWORD},
        {"username": "alice/../root", "password": PASSWORD},
        {"username": "", "password": PASSWORD},
        {"username": "alice", "password": PASSWORD, "expiration": 59},
        {"username": "alice", "password": PASSWORD, "expiration": 604801},
        {"username": "alice", "password": PASSWORD, "expiration": "soon"},
        {"username": "alice", "password": "x" * 1025},
    ],
)
def test_a_login_out_of_bounds_is_refused(server: Server, alice: Pai, form: dict[str, object]) -> None:
    for terms in ({"json": form}, {"data": form}):
        status, name, message = Pai(server.url).refused("POST", "/api/v2/authn/basic/login", **terms)
        assert (status, name) == (400, "InvalidParametersError") and message.startswith("Invalid request parameters.")


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"\xff\xfe", b"[" * 5000])
def test_a_body_that_is_not_json_is_refused(server: Server, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    status, name, _ = Pai(server.url).refused("POST", "/api/v2/authn/basic/login", content=body, headers=headers)
    assert (status, name) == (400, "InvalidParametersError")


def test_a_wrong_password_and_an_unknown_user_are_told_apart(server: Server, alice: Pai) -> None:
    wrong = {"username": "alice", "password": "wrong horse"}
    unknown = {"username": "Nobody.1", "password": PASSWORD}
    refused = Pai(server.url).refused
    address = "/api/v2/authn/basic/login"
    assert refused("POST", address, data=wrong) == (400, "IncorrectPasswordError", "Password is incorrect.")
    assert refused("POST", address, data=unknown) == (400, "NoUserError", "User Nobody.1 is not found.")


def test_guessing_is_slowed_down(server: Server) -> None:
    signed_in(server, "guessed")
    guess = {"username": "guessed", "password": "wrong horse"}
    found = {Pai(server.url).refused("POST", "/api/v2/authn/basic/login", json=guess)[0] for _ in range(11)}
    assert found == {400, 429}
    server.app.state.login_limit = FailureLimit()


def test_a_token_ends_with_its_time(server: Server, alice: Pai) -> None:
    short = Pai(server.url, login(server, "alice", expiration=60)["token"])
    assert short.get("/api/v2/tokens/check")
    server.clock.advance(61)
    assert short.refused("GET", "/api/v2/tokens/check") == INVALID
    assert short.token not in alice.get("/api/v2/tokens")["tokens"]


def test_a_token_that_was_logged_out_is_good_no_more(server: Server, alice: Pai) -> None:
    other = Pai(server.url, login(server, "alice")["token"])
    assert other.call("DELETE", "/api/v2/authn/basic/logout").json() == {"message": "Logout successfully"}
    assert other.refused("GET", "/api/v2/users") == INVALID
    assert alice.get("/api/v2/tokens/check")


def test_tokens_are_listed_as_they_are_and_revoked_by_themselves(server: Server) -> None:
    carol = signed_in(server, "carol")
    program = application(server, carol)
    assert carol.get("/api/v2/tokens")["tokens"] == carol.get("/api/v1/token")["tokens"]
    assert set(carol.get("/api/v2/tokens")["tokens"]) == {carol.token, program.token}
    done = carol.call("DELETE", f"/api/v2/tokens/{program.token}")
    assert (done.status_code, done.json()) == (200, {"message": "revoke successfully"})
    assert program.refused("GET", "/api/v2/users") == INVALID
    assert carol.get("/api/v2/tokens")["tokens"] == [carol.token]
    assert carol.refused("DELETE", f"/api/v2/tokens/{program.token}") == INVALID
    assert carol.refused("DELETE", "/api/v2/tokens/eyJx.eyJx.xxxxxxxxxxxxxxxxxxxxxxxx") == INVALID


def test_somebody_elses_token_is_revoked_by_administrators_only(server: Server, alice: Pai, root: Pai) -> None:
    dave = signed_in(server, "dave")
    refused = alice.refused("DELETE", f"/api/v2/tokens/{dave.token}")
    assert refused == (403, "ForbiddenUserError", "User alice is not allowed to do this operation.")
    assert dave.get("/api/v2/tokens/check")
    assert root.call("DELETE", f"/api/v2/tokens/{dave.token}").status_code == 200
    assert dave.refused("GET", "/api/v2/tokens/check") == INVALID


def test_a_program_never_expires_and_comes_by_basic_too(server: Server) -> None:
    erin, frank = signed_in(server, "erin"), signed_in(server, "frank")
    token = application(server, erin).token
    assert payload(token)["application"] is True and "exp" not in payload(token)

    def basic(text: str) -> Pai:
        return Pai(server.url, basic=base64.b64encode(text.encode()).decode())

    for text in (f"frank:{token}", f"erin:{erin.token}", f"frank:{frank.token}", f"erin:{PASSWORD}", "erin", "::"):
        assert basic(text).refused("GET", "/api/v2/users") == INVALID
    assert Pai(server.url, basic="%%%").refused("GET", "/api/v2/users") == INVALID
    server.clock.advance(400 * 86_400)
    assert basic(f"erin:{token}").get("/api/v2/users/erin")["username"] == "erin"
    assert Pai(server.url, token).get("/api/v1/token/check")
    assert erin.refused("GET", "/api/v1/token/check") == INVALID


def test_a_token_signed_by_anybody_else_is_refused(server: Server, alice: Pai) -> None:
    head, body, signature = alice.token.split(".")
    none = base64.urlsafe_b64encode(b'{"typ":"JWT","alg":"none"}').decode().rstrip("=")
    flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
    for token in (f"{head}.{body}.{flipped}", f"{none}.{body}.", f"{none}.{body}.{signature}", f"{head}.{body}"):
        assert Pai(server.url, token).refused("GET", "/api/v2/users") == INVALID


def test_an_account_that_is_locked_is_out(server: Server, root: Pai) -> None:
    grace = signed_in(server, "grace")
    server.call(server.store.change_user("grace", disabled=True))
    server.service.authentication.forget(user="grace")
    assert grace.refused("GET", "/api/v2/users") == INVALID
    form = {"username": "grace", "password": PASSWORD}
    assert Pai(server.url).refused("POST", "/api/v2/authn/basic/login", data=form)[:2] == (403, "ForbiddenUserError")


def test_a_programs_token_is_held_to_the_same_at_our_own_api(server: Server, alice: Pai) -> None:
    program = application(server, alice)
    assert program.get("/api/v3/me")["user"] == "alice"
    refused = program.call("POST", "/api/v3/tokens", json={})
    assert refused.status_code == 403 and "application-token" in refused.json()["message"]
    assert program.call("POST", "/api/v3/users/alice", json={"password": "another one"}).status_code == 403


def test_the_store_holds_no_token(server: Server, alice: Pai) -> None:
    for path in server.folder.glob("corral.db*"):
        assert alice.token.encode() not in path.read_bytes()
        assert alice.token.rpartition(".")[2].encode() not in path.read_bytes()


def test_a_token_in_an_address_is_not_logged(server: Server, alice: Pai, caplog: pytest.LogCaptureFixture) -> None:
    broken = server.openpai.tokens.revoke

    async def fails(*_: object) -> None:
        raise RuntimeError("broken")

    server.openpai.tokens.revoke = fails  # type: ignore[method-assign]
    try:
        with caplog.at_level(logging.DEBUG):
            status, name, message = alice.refused("DELETE", f"/api/v2/tokens/{alice.token}")
    finally:
        server.openpai.tokens.revoke = broken  # type: ignore[method-assign]
    assert (status, name) == (500, "UnknownError") and "look for" in message
    logged = "\n".join(
        f"{record.getMessage()} {record.exc_text}" for record in caplog.records if "corral" in record.name
    )
    assert "/api/v2/tokens/***" in logged
    assert alice.token not in logged and alice.token.rpartition(".")[2] not in logged


@pytest.mark.parametrize(
    ("method", "path", "shown"),
    [
        ("GET", "/api/v2/nothing", "/api/v2/nothing"),
        ("GET", "/rest-server/api/v1/nothing?x=1", "/api/v1/nothing?x=1"),
        ("PATCH", "/api/v2/users", "/api/v2/users"),
        ("POST", "/rest-server/elsewhere", "/rest-server/elsewhere"),
        ("GET", "/rest-server/api/v3/jobs", "/rest-server/api/v3/jobs"),
    ],
)
def test_where_there_is_nothing_is_said_so(server: Server, method: str, path: str, shown: str) -> None:
    assert Pai(server.url).refused(method, path) == (404, "NoApiError", f"API {shown} is not found.")


def test_a_log_server_that_is_not_supported_is_a_fault_of_the_server() -> None:
    assert OpenPaiRefusal("NoSupportedLogServer", "There is no log server.").status == 500


def test_how_one_signs_in_is_told_to_everybody(server: Server) -> None:
    for version in ("v1", "v2"):
        assert Pai(server.url).get(f"/rest-server/api/{version}/authn/info") == {
            "authn_type": "basic",
            "loginURI": f"/api/{version}/authn/basic/login",
            "loginURIMethod": "post",
        }


def test_a_last_slash_changes_nothing(server: Server, alice: Pai) -> None:
    assert alice.get("/api/v2/users/alice/") == alice.get("/api/v2/users/alice")
