"""Bad input is refused with one sentence and a code, never with a traceback or a hang."""

from __future__ import annotations

import io
import json
import socket
import tarfile
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from corral.api.rate_limits import FailureLimit
from corral.client import Client
from corral.kernel.errors import InvalidInput, Unauthenticated
from tests.api.harness import CODE_LIMIT, Server

JOB = b'{"name": "x", "framework": "shell", "roles": {"worker": {"command": "true"}}}'


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    """Plain HTTP, signed in as alice."""
    headers = {"authorization": f"Bearer {server.token('alice')}"}
    with httpx2.Client(base_url=server.url, headers=headers, trust_env=False) as client:
        yield client


def refusal(response: httpx2.Response, status: int, code: str = "") -> str:
    assert response.status_code == status, response.text
    body = response.json()
    assert body["code"] and body["message"]
    assert "Traceback" not in response.text
    assert not code or body["code"] == code
    return str(body["message"])


MALFORMED = {
    "nothing": b"",
    "no document": b"just words",
    "broken YAML": b"name: [",
    "broken JSON": b'{"name": ',
    "not UTF-8": b"name: \xff\xfe",
    "NUL": b"name: a\x00b",
    "unknown key": b"name: x\nframework: shell\nrolls: {}\n",
    "wrong unit": b"name: x\nframework: shell\nroles:\n  w: {command: a, resources: {memory: 2 gigs}}\n",
    "two documents": b"name: a\n---\nname: b\n",
    "a tag": b"!!python/object/apply:os.system [id]\n",
    "deep nesting": b"[" * 5000 + b"]" * 5000,
    "deep JSON": b'{"a":' * 3000 + b"1" + b"}" * 3000,
    "alias bomb": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [" % (98 + n, 98 + n) + b",".join([b"*%c" % (97 + n)] * 9) + b"]\n" for n in range(9)),
    "an unknown framework": b"name: x\nframework: torchy\nroles: {w: {command: a}}\n",
    "an unknown queue": b"name: x\nframework: shell\nqueue: nowhere\nroles: {w: {command: a}}\n",
    "code that nobody uploaded": b"name: x\nframework: shell\ncode: .\nroles: {w: {command: a}}\n",
    "a path out of the folder": b"name: x\nframework: shell\ncode: {uri: 'blob:1', target: ../../etc}\n"
    b"roles: {w: {command: a}}\n",
    "an unknown secret": b"name: x\nframework: shell\nroles: {w: {command: a, secrets: {KEY: nowhere}}}\n",
    "an unknown dependency": b"name: x\nframework: shell\nafter: [nobody]\nroles: {w: {command: a}}\n",
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_bad_job_file_is_refused(http: httpx2.Client, what: str) -> None:
    refusal(http.post("/api/v3/jobs", content=MALFORMED[what]), 400)


CALLS = {
    "no such address": ("GET", "/api/v3/jobz", {}, 404, "no-such-address"),
    "wrong method": ("PATCH", "/api/v3/jobs", {}, 405, "method-not-allowed"),
    "a limit that is no number": ("GET", "/api/v3/jobs?limit=many", {}, 422, "invalid-parameter"),
    "a limit too large": ("GET", "/api/v3/jobs?limit=100000", {}, 422, "invalid-parameter"),
    "a path escape": ("GET", "/api/v3/jobs/..%2f..%2fetc%2fpasswd", {}, 404, ""),
    "a job that cannot be": ("GET", "/api/v3/jobs/%00", {}, 422, "invalid-parameter"),
    "an index below zero": ("GET", "/api/v3/jobs/x/tasks/w/-1/logs", {}, 422, "invalid-parameter"),
    "a parameter without a sign": ("POST", "/api/v3/jobs?set=lr", {"content": JOB}, 400, "invalid-parameter"),
    "a broken body": ("POST", "/api/v3/jobs/x/scale", {"content": b"{"}, 400, "malformed-body"),
    "a body of another shape": (
        "POST",
        "/api/v3/jobs/x/scale",
        {"content": b'{"replicas": "many"}'},
        400,
        "invalid-body",
    ),
    "an unknown field": ("POST", "/api/v3/jobs/x/scale", {"content": b'{"replicas": 1, "x": 1}'}, 400, "invalid-body"),
    "a number too large": ("POST", "/api/v3/jobs/x/scale", {"content": b'{"replicas": 1e30}'}, 400, "invalid-body"),
    "a digest that is none": ("PUT", "/api/v3/blobs/code", {"content": b"not gzip"}, 400, "bad-archive"),
    "a cursor that is none": ("GET", "/api/v3/jobs?after=%F0%9F%92%A5", {}, 400, ""),
    "an event id that is none": (
        "GET",
        "/api/v3/events",
        {"headers": {"last-event-id": "x"}},
        422,
        "invalid-parameter",
    ),
    "a sign-in that is not JSON": ("POST", "/api/v3/login", {"content": b"user=a"}, 400, "wrong-media-type"),
    "nothing to sign in with": ("POST", "/api/v3/login", {"json": {}}, 400, "invalid-login"),
    "a link that is none": ("POST", "/api/v3/login", {"json": {"link": "nope"}}, 401, ""),
    "another's account": ("GET", "/api/v3/users/root", {}, 403, "not-allowed"),
    "the audit log": ("GET", "/api/v3/audit", {}, 403, "not-allowed"),
    "the runtime's address": ("GET", "/api/v3/runtime/peers", {}, 403, "not-allowed"),
    "a checkpoint of the future": (
        "POST",
        "/api/v3/runtime/checkpoint",
        {"json": {"attempt": "a", "ageSeconds": -1}},
        400,
        "invalid-body",
    ),
    "a checkpoint of a person": ("POST", "/api/v3/runtime/checkpoint", {"json": {"attempt": "a"}}, 403, "not-allowed"),
    "progress beyond the end": (
        "POST",
        "/api/v3/runtime/progress",
        {"json": {"attempt": "a", "progress": 1.5}},
        400,
        "invalid-body",
    ),
    "progress that is no number": (
        "POST",
        "/api/v3/runtime/progress",
        {"content": b'{"attempt": "a", "loss": 1e999}', "headers": {"content-type": "application/json"}},
        400,
        "invalid-body",
    ),
    "progress of a person": ("POST", "/api/v3/runtime/progress", {"json": {"attempt": "a"}}, 403, "not-allowed"),
    "a curve without a name": (
        "POST",
        "/api/v3/runtime/scalars",
        {"json": {"attempt": "a", "scalars": [{"run": "", "tag": "", "ageSeconds": 0, "value": 1}]}},
        400,
        "invalid-body",
    ),
    "curves of a person": (
        "POST",
        "/api/v3/runtime/scalars",
        {"json": {"attempt": "a", "scalars": []}},
        403,
        "not-allowed",
    ),
    "a node that is not there": ("GET", "/api/v3/nodes/local/none", {}, 404, ""),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_bad_call_is_refused(http: httpx2.Client, what: str) -> None:
    method, path, more, status, code = CALLS[what]
    refusal(http.request(method, path, **more), status, code)  # type: ignore[arg-type]


SAID = {
    "a pattern of names": (
        "GET",
        "/api/v3/jobs/bi*",
        {},
        422,
        "There is no job 'bi*': jobs are named one by one, and `corral ls -q PART -o name` lists those with a part of a "
        "name.",
    ),
    "a role that is none": (
        "GET",
        "/api/v3/jobs/x/tasks/W!/0/logs",
        {},
        422,
        "The parameter role cannot be 'W!'; expected lower-case letters, digits and '-', beginning with a letter or digit, "
        "63 characters at most.",
    ),
    "a name of an account": (
        "POST",
        "/api/v3/users",
        {"json": {"name": "al ice!"}},
        400,
        "The field name does not fit; expected letters, digits, '_', '.' and '-', 126 characters at most.",
    ),
}


@pytest.mark.parametrize("what", SAID)
def test_what_a_pattern_refuses_is_told_in_words(http: httpx2.Client, what: str) -> None:
    method, path, more, status, said = SAID[what]
    assert refusal(http.request(method, path, **more), status) == said  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer"}, {"authorization": "Basic YTpi"}, {"authorization": "Bearer crl_" + "x" * 5000}],
)
def test_without_a_good_token_nothing_is_told(server: Server, headers: dict[str, str]) -> None:
    response = httpx2.get(f"{server.url}/api/v3/jobs", headers=headers, trust_env=False)
    refusal(response, 401)
    assert response.headers["www-authenticate"].startswith("Bearer")


def test_an_expired_token_is_refused_with_the_way_back(server: Server) -> None:
    with server.client("alice") as alice:
        short = alice.create_token("short", days=1)["token"]
    with Client(server.url, short) as client:
        assert client.me()["user"] == "alice"
        server.clock.advance(2 * 86400)
        with pytest.raises(Unauthenticated, match="corral login") as refused:
            client.me()
    assert refused.value.code == "token-expired"


def test_a_gigabyte_that_is_declared_is_refused_before_it_is_sent(server: Server, http: httpx2.Client) -> None:
    answer = raw_request(
        server, f"POST /api/v3/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: {http.headers['authorization']}\r\n"
        f"Content-Length: {10**9}\r\n\r\n".encode()
    )  # fmt: skip
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"body-too-large" in answer


def test_a_gigabyte_that_is_streamed_is_refused_after_the_first_megabyte(server: Server, http: httpx2.Client) -> None:
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1024 * 1024
            yield b"x" * (1024 * 1024)

    try:
        response = http.post("/api/v3/jobs", content=pieces())
    except httpx2.TransportError:
        pass  # the server closed the connection before all was sent
    else:
        refusal(response, 413, "body-too-large")
    assert sent < 100 * 1024 * 1024


def test_code_beyond_the_limit_is_refused(http: httpx2.Client) -> None:
    response = http.put("/api/v3/blobs/code", content=b"\0" * (CODE_LIMIT + 1))
    refusal(response, 413)


@pytest.mark.parametrize("name", ["../escape", "/etc/passwd", "a/../../b"])
def test_a_code_archive_that_leaves_its_folder_is_refused(http: httpx2.Client, name: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo(name))
    refusal(http.put("/api/v3/blobs/code", content=packed.getvalue()), 400, "bad-archive")


def test_lengths_that_are_lies_do_not_stop_the_server(server: Server, alice: Client) -> None:
    for length in ("-1", "1e9", "99999999999999999999999"):
        answer = raw_request(
            server, f"POST /api/v3/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()
        )
        assert answer.split()[1:2] in ([b"400"], [b"413"])
    assert alice.me()["user"] == "alice"


def test_a_fault_of_ours_shows_an_id_and_no_traceback(
    server: Server, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(server.service.queues, "page", broken)
    response = http.get("/api/v3/queues")
    message = refusal(response, 500, "internal-fault")
    assert "secret detail" not in response.text
    assert response.json()["correlation"] in message


def test_every_answer_carries_the_security_headers(http: httpx2.Client) -> None:
    for path in ("/", "/api/v3/jobs", "/api/v3/nothing", "/healthz"):
        headers = http.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
    assert http.get("/api/v3/jobs").headers["cache-control"] == "no-store"


def test_sign_ins_are_slowed_down_after_ten_refusals(server: Server) -> None:
    url = f"{server.url}/api/v3/login"
    server.app.state.login_limit = FailureLimit()
    body = {"user": "nobody", "password": "wrong-password"}
    statuses = [httpx2.post(url, json=body, trust_env=False).status_code for _ in range(11)]
    assert statuses == [401] * 10 + [429]
    server.app.state.login_limit = FailureLimit()


def test_a_change_by_cookie_needs_the_header_that_no_other_page_can_send(server: Server) -> None:
    token = server.token("alice")
    with httpx2.Client(base_url=server.url, cookies={"corral_session": token}, trust_env=False) as browser:
        assert browser.get("/api/v3/me").json()["user"] == "alice"
        refusal(browser.post("/api/v3/tokens", json={}), 403, "csrf")
        made = browser.post("/api/v3/tokens", json={}, headers={"x-corral-csrf": "1"})
        assert made.status_code == 201


def test_the_sdk_raises_what_the_server_refused_with(alice: Client) -> None:
    with pytest.raises(InvalidInput) as refused:
        alice.submit("name: [")
    assert refused.value.code == "invalid-document"


def raw_request(server: Server, data: bytes) -> bytes:
    """The server's answer to bytes that no client library would send."""
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=120) as connection:
        connection.sendall(data)
        answer = b""
        while b"\r\n\r\n" not in answer or b"}" not in answer:
            piece = connection.recv(65536)
            if not piece:
                break
            answer += piece
    return answer


def test_json_numbers_of_any_size_are_only_data(http: httpx2.Client) -> None:
    body = {**json.loads(JOB), "name": "numbers", "priority": 10**30}
    refusal(http.post("/api/v3/jobs", content=json.dumps(body)), 400)
