"""A request that meets an idle connection closed by the server is sent again if it is safe to repeat.

A connection that the server may be about to close is not used again.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from corral.client import AsyncClient, Client, aio, transport
from corral.kernel.errors import Unavailable

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n"
BODY = b'{"state": "ok"}'


class Closing:
    """Answers the first request of its first connection, resets that at the second, and answers all others."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.asked: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for first in (True, False):
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with caller:
                while data := caller.recv(65536):
                    while b"\r\n\r\n" not in data:
                        data += caller.recv(65536)
                    self.asked.append(data.split(b" ")[0])
                    if first and len(self.asked) == 2:
                        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        break
                    length = re.search(rb"(?i)content-length: (\d+)", data)
                    missing = int(length[1]) - len(data.partition(b"\r\n\r\n")[2]) if length else 0
                    while missing:
                        missing -= len(caller.recv(missing))
                    caller.sendall(ANSWER.replace(b"14", str(len(BODY)).encode()) + BODY)


@pytest.fixture
def closing() -> Iterator[Closing]:
    made = Closing()
    yield made
    made.listener.close()


def test_a_submit_with_a_key_is_sent_again(closing: Closing) -> None:
    with Client(closing.url, "token") as client:
        client.me()
        assert client.submit("name: a", idempotency_key="k")["state"] == "ok"
    assert closing.asked == [b"GET", b"POST", b"POST"]


def test_what_must_not_be_done_twice_is_not(closing: Closing) -> None:
    with Client(closing.url, "token") as client:
        client.me()
        with pytest.raises(Unavailable):
            client.stop("a")
    assert closing.asked == [b"GET", b"POST"]


async def test_the_async_client_does_the_same(closing: Closing) -> None:
    async with AsyncClient(closing.url, "token") as client:
        await client.me()
        assert (await client.submit("name: a", idempotency_key="k"))["state"] == "ok"
    assert closing.asked == [b"GET", b"POST", b"POST"]


def test_what_the_server_cannot_have_whole_is_sent_again(closing: Closing) -> None:
    with Client(closing.url, "token") as client:
        client.me()
        client.apply("#" * 50_000_000)  # far more than the buffers of the connection
    assert closing.asked == [b"GET", b"POST", b"POST"]


def test_a_connection_that_was_idle_for_a_while_is_not_used_again(
    closing: Closing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "KEPT_SECONDS", 0.0)
    with Client(closing.url, "token") as client:
        client.me()
        closing.asked.clear()
        client.stop("a")
    assert (closing.asked, closing.connections) == ([b"POST"], 2)


async def test_nor_by_the_async_client(closing: Closing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio, "KEPT_SECONDS", 0.0)
    async with AsyncClient(closing.url, "token") as client:
        await client.me()
        closing.asked.clear()
        await client.stop("a")
    assert (closing.asked, closing.connections) == ([b"POST"], 2)
