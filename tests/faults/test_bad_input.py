"""Bad input to a running server is answered with one sentence and a code, and with a remedy."""

from __future__ import annotations

import contextlib
import io
import select
import socket
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.house import House, assert_sentence, shell_job, until

GIB = 1024**3
_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)
_ROLE = "framework: shell\nroles:\n  worker: {command: 'true'}\n"

DOCUMENTS = {
    "malformed YAML": ("name: [\n", ":1:"),
    "an unknown key": (f"name: typo\nreplcas: 2\n{_ROLE}", "replcas"),
    "a wrong unit": (
        "name: unit\nframework: shell\nroles:\n  worker: {command: 'true', resources: {memory: 2 gigs}}\n",
        "memory",
    ),
    "deep nesting": ("[" * 5000 + "]" * 5000, "deeper"),
    "an alias bomb": (_BOMB, "aliases"),
}


@pytest.mark.parametrize("what", DOCUMENTS)
def test_a_bad_document_is_refused_by_api_and_command_line(shared_house: House, what: str) -> None:
    text, hint = DOCUMENTS[what]
    answer = shared_house.call("POST", "/api/v3/jobs", text.encode(), headers={"Content-Type": "application/yaml"})
    assert hint in answer.refused(400, "invalid-document")
    file = shared_house.home / "bad.yaml"
    file.write_text(text)
    said = shared_house.refuses(2, "submit", str(file))
    assert hint in said
    assert shared_house.corral("validate", str(file)).returncode == 2


def test_a_gigabyte_declared_is_refused_before_it_is_sent(shared_house: House) -> None:
    for path, length in (("/api/v3/jobs", GIB), ("/api/v3/blobs/code", GIB), ("/api/v3/login", GIB)):
        method = "PUT" if path.endswith("code") else "POST"
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {shared_house.token}\r\n"
        answer = _raw(
            shared_house, f"{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()
        )
        assert answer.startswith(b"HTTP/1.1 413"), answer
        assert b'"body-too-large"' in answer


@pytest.mark.parametrize("path", ["/api/v3/jobs", "/api/v3/login"])
def test_a_gigabyte_streamed_is_refused_early_and_never_held(shared_house: House, path: str) -> None:
    front = shared_house.processes()["front"]
    before = _peak(front)
    sent, answer = _stream(shared_house, "POST", path, GIB)
    assert answer.startswith(b"HTTP/1.1 413"), answer
    assert sent < GIB // 4
    assert _peak(front) - before < 32 * 1024**2
    assert shared_house.call("GET", "/api/v3/me").status == 200


def test_a_code_archive_streamed_beyond_the_limit_is_dropped(small_house: House) -> None:
    front = small_house.processes()["front"]
    before = _peak(front)
    sent, answer = _stream(small_house, "PUT", "/api/v3/blobs/code", GIB)
    assert answer.startswith(b"HTTP/1.1 4"), answer
    assert sent < GIB // 4
    assert _peak(front) - before < 32 * 1024**2
    assert [path for path in (small_house.data / "blobs" / "code").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("name", ["../escape", "/etc/cron.d/escape", "inside/../../escape", "link/escape"])
def test_a_code_archive_that_leaves_its_folder_is_refused(shared_house: House, name: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/tmp"
        if name.startswith("link"):
            archive.addfile(link)
        archive.addfile(tarfile.TarInfo(name))
    answer = shared_house.call("PUT", "/api/v3/blobs/code", packed.getvalue())
    answer.refused(400, "bad-archive")


def test_a_name_in_use_is_a_conflict(shared_house: House) -> None:
    ref = shared_house.submit("taken", "sleep 300")
    message = shared_house.call("POST", "/api/v3/jobs", shell_job("taken", "true")).refused(409, "name-taken")
    assert "taken" in message
    assert "taken" in shared_house.refuses(4, "run", "--name", "taken", "--", "true")
    shared_house.call("POST", f"/api/v3/jobs/{ref}/stop")
    shared_house.until_ended(ref)


def test_an_impossible_request_waits_only_when_told_to(shared_house: House) -> None:
    many = shell_job("many", "true", resources={"devices": 64})
    message = shared_house.call("POST", "/api/v3/jobs", many).refused(409, "impossible-request")
    assert "--wait-for-capacity" in message
    shared_house.refuses(4, "run", "--devices", "64", "--", "true")
    made = shared_house.call("POST", "/api/v3/jobs?waitForCapacity=true", many)
    assert made.status == 201
    ref = made.body["id"]
    waiting = until(lambda: _reason(shared_house, ref), "the scheduler's reason")
    assert waiting["code"] == "no-such-device"
    assert_sentence(waiting["message"])
    assert shared_house.job(ref)["state"] == "waiting"
    shared_house.call("POST", f"/api/v3/jobs/{ref}/stop")
    shared_house.until_ended(ref)


def test_unknown_users_are_named_as_such_and_learn_nothing(shared_house: House) -> None:
    shared_house.call("GET", "/api/v3/users/nobody-here").refused(404, "user-not-found")
    shared_house.refuses(3, "users", "change", "nobody-here", "--lock")
    body = {"user": "nobody-here", "password": "some password"}
    shared_house.call("POST", "/api/v3/login", body, token="").refused(401, "wrong-password")
    assert shared_house.call("GET", "/api/v3/jobs/nobody-here~job").status == 404
    assert shared_house.call("GET", "/api/v3/jobs?user=nobody-here").body["items"] == []


def test_an_expired_token_is_refused_with_the_way_back(shared_house: House) -> None:
    with shared_house.client() as client:
        short = client.create_token("short", days=10 / 86_400)["token"]
        assert shared_house.call("GET", "/api/v3/me", token=short).status == 200
    until(lambda: shared_house.call("GET", "/api/v3/me", token=short).status == 401, "the token's end")
    message = shared_house.call("GET", "/api/v3/me", token=short).refused(401, "token-expired")
    assert "corral login" in message
    signed_in = shared_house.environment["CORRAL_TOKEN"]
    try:
        shared_house.environment["CORRAL_TOKEN"] = short
        assert "corral login" in shared_house.refuses(4, "ls")
    finally:
        shared_house.environment["CORRAL_TOKEN"] = signed_in


@pytest.fixture
def small_house() -> Iterator[House]:
    """A server with a small limit on code."""
    house = House(environment={"CORRAL_CODE_LIMIT_BYTES": str(4 * 1024**2)})
    house.up()
    yield house
    house.close()


def _reason(house: House, ref: str) -> dict[str, str] | None:
    """The reason of a waiting job, once the scheduler has given one."""
    waiting: dict[str, str] | None = house.job(ref)["waiting"]
    return waiting if waiting and waiting["code"] != "submitted" else None


def _raw(house: House, data: bytes) -> bytes:
    parts = urlsplit(house.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=120) as connection:
        connection.sendall(data)
        return _answer(connection)


def _answer(connection: socket.socket) -> bytes:
    answer = b""
    while b"\r\n\r\n" not in answer or b"}" not in answer:
        try:
            piece = connection.recv(65536)
        except ConnectionResetError:
            break
        if not piece:
            break
        answer += piece
    return answer


def _stream(house: House, method: str, path: str, total: int) -> tuple[int, bytes]:
    """Send a body in chunks without waiting for the server; returns the bytes accepted and the answer."""
    parts = urlsplit(house.url)
    piece = b"[" * 65536
    chunk = f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
    sent = 0
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=120) as connection:
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {house.token}\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        connection.setblocking(False)
        rest = memoryview(chunk)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the server has closed the connection
            while sent < total and _takes_more(connection):
                rest = rest[connection.send(rest) :]
                if not rest:
                    rest = memoryview(chunk)
                    sent += len(piece)
        connection.settimeout(120)
        return sent, _answer(connection)


def _takes_more(connection: socket.socket) -> bool:
    """Wait until the server reads on; it does so no more where it has answered and has read nothing for 2 s."""
    begun = time.monotonic()
    while not select.select([], [connection], [], 2)[1]:
        if select.select([connection], [], [], 0)[0]:
            return False
        assert time.monotonic() < begun + 120, "the server neither reads nor answers"
    return True


def _peak(pid: int) -> int:
    """The largest memory use of a process so far, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} is gone")
