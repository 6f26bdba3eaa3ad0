"""A refusal that passes by itself is waited for, if the call may be sent again; any other is raised at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.client import AsyncClient, Client
from corral.client.calls import Call
from corral.client.patience import pause_before_retry
from corral.kernel.errors import Unavailable

TOLD = ["control-starting", "store-locked", "store-unreachable", "store-busy", "no-control"]


class Refusing(ThreadingHTTPServer):
    """Refuses with each of `refusals` in turn, then answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refusals: list[str] = []
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Refusing
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.server.asked.append(self.command)
        code = self.server.refusals.pop(0) if self.server.refusals else ""
        body = json.dumps({"code": code, "message": "Not now."} if code else {"state": "ok"}).encode()
        self.send_response(503 if code else 200)
        self.send_header("retry-after", "0")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[Refusing]:
    server = Refusing()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_deletion_waits_for_a_database_that_is_locked_and_a_server_that_starts(refusing: Refusing) -> None:
    refusing.refusals = list(TOLD)
    told: list[str] = []
    with Client(refusing.url, "token", waiting=lambda refused: told.append(refused.code)) as client:
        client.delete("a")
    assert refusing.asked == ["DELETE"] * (len(TOLD) + 1) and told == TOLD


async def test_the_async_client_waits_too(refusing: Refusing) -> None:
    refusing.refusals = list(TOLD)
    async with AsyncClient(refusing.url, "token") as client:
        await client.submit("name: a", idempotency_key="k")
    assert refusing.asked == ["POST"] * (len(TOLD) + 1)


def test_what_must_not_be_done_twice_waits_only_for_a_server_that_starts(refusing: Refusing) -> None:
    refusing.refusals = ["control-starting", "store-locked"]
    with Client(refusing.url, "token") as client, pytest.raises(Unavailable) as refused:
        client.apply("kind: Queue")
    assert refused.value.code == "store-locked" and refusing.asked == ["POST", "POST"]


def test_a_client_without_patience_raises_at_once(refusing: Refusing) -> None:
    refusing.refusals = ["control-starting"]
    with Client(refusing.url, "token", patience=0) as client, pytest.raises(Unavailable, match="Not now"):
        client.me()
    assert refusing.asked == ["GET"]


@given(st.sampled_from([*TOLD, "no-series", "unreachable"]), st.floats(0, 100), st.floats(-10, 100))
def test_a_pause_never_exceeds_what_is_left(code: str, suggested: float, left: float) -> None:
    pause = pause_before_retry(Call("GET", "/"), Unavailable(code, "", retry_after=suggested), left)
    assert (pause is not None) == (code in TOLD and left > 0)
    assert pause is None or 0 <= pause <= left
