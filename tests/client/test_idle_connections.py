"""A request that meets an idle connection closed by the server is sent again if it is safe to repeat."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from corral.client import AsyncClient, Client
from corral.kernel.errors import Unavailable

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n"
BODY = b'{"state": "ok"}'


class Closing:
    """Answers the first request of its first connection, resets that at the second, and answers all others."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.asked: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for first in (True, False):
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            with caller:
                while data := caller.recv(65536):
                    while b"\r\n\r\n" not in data:
                        data += caller.recv(65536)
                    self.asked.append(data.split(b" ")[0])
                    if first and len(self.asked) == 2:
                        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        break
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
