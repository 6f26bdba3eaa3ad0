"""A WebSocket client ends its connection when it or the server leaves, and not when either side is slow to read."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator

import pytest
from websockets.asyncio.client import connect as connect_async
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from corral.client import websocket_keepalive
from corral.client.exec import AsyncExecStream, ExecStream
from corral.client.websocket_keepalive import AsyncPatientConnection, PatientConnection
from corral.kernel.errors import Unavailable
from tests.waiting import pause

PATIENCE = 60.0
MANY = 100
PIECE = bytes(60_000)


async def unread(socket: ServerConnection) -> None:
    """Read one message, and answer it without reading further: pings stay unanswered."""
    asked = await socket.recv()
    socket.transport.pause_reading()  # type: ignore[attr-defined]
    if asked == "one":
        while True:
            await socket.send(b"there")
            await asyncio.sleep(0.05)
    for _ in range(MANY if asked == "many" else 0):
        await socket.send(b"there")
    await socket.wait_closed()


@pytest.fixture
def url() -> Iterator[str]:
    """A server that leaves pings unread."""
    listening: list[int] = []
    up, down = threading.Event(), asyncio.Event()

    async def served() -> None:
        async with serve(unread, "127.0.0.1", 0, ping_interval=None, close_timeout=0.1) as server:
            listening.append(server.sockets[0].getsockname()[1])
            up.set()
            await down.wait()

    loop = asyncio.new_event_loop()
    serving = threading.Thread(target=loop.run_until_complete, args=(served(),))
    serving.start()
    assert up.wait(PATIENCE)
    yield f"ws://127.0.0.1:{listening[0]}"
    loop.call_soon_threadsafe(down.set)
    serving.join()
    loop.close()


def test_each_frame_counts_as_an_answer(url: str) -> None:
    with connect(url, proxy=None, create_connection=PatientConnection, ping_interval=None) as opened:
        opened.send("one")
        assert opened.recv(PATIENCE) == b"there"
        assert opened.ping().wait(PATIENCE)
        opened.close_timeout = 0.1


async def test_each_frame_counts_as_an_answer_in_an_event_loop(url: str) -> None:
    async with (
        connect_async(
            url, proxy=None, create_connection=AsyncPatientConnection, ping_interval=None, close_timeout=0.1
        ) as opened,
        asyncio.timeout(PATIENCE),
    ):
        await opened.send("one")
        assert await opened.recv() == b"there"
        await (await opened.ping())


def test_a_client_that_reads_nothing_waits_for_no_answer(url: str) -> None:
    with connect(url, proxy=None, create_connection=PatientConnection, ping_interval=None) as opened:
        opened.send("many")
        begun = time.monotonic()
        while not opened.recv_messages.paused:
            assert time.monotonic() - begun < PATIENCE
            time.sleep(pause(begun))
        assert opened.ping().is_set()
        assert [opened.recv(PATIENCE) for _ in range(MANY)] == [b"there"] * MANY
        opened.close_timeout = 0.1


async def test_a_client_that_reads_nothing_waits_for_no_answer_in_an_event_loop(url: str) -> None:
    async with (
        connect_async(
            url, proxy=None, create_connection=AsyncPatientConnection, ping_interval=None, close_timeout=0.1
        ) as opened,
        asyncio.timeout(PATIENCE),
    ):
        await opened.send("many")
        while not opened.recv_messages.paused:
            await asyncio.sleep(0.01)
        await (await opened.ping())
        assert [await opened.recv() for _ in range(MANY)] == [b"there"] * MANY


def test_a_silent_server_is_lost(url: str) -> None:
    options = {"ping_interval": 0.1, "ping_timeout": 0.1, "close_timeout": 0.1}
    with connect(url, proxy=None, create_connection=PatientConnection, **options) as opened:
        opened.send("nothing")
        with pytest.raises(ConnectionClosed):
            opened.recv(PATIENCE)


async def test_a_silent_server_is_lost_in_an_event_loop(url: str) -> None:
    options = {"ping_interval": 0.1, "ping_timeout": 0.1, "close_timeout": 0.1}
    async with (
        connect_async(url, proxy=None, create_connection=AsyncPatientConnection, **options) as opened,
        asyncio.timeout(PATIENCE),
    ):
        await opened.send("nothing")
        with pytest.raises(ConnectionClosed):
            await opened.recv()


def test_a_stream_is_closed_while_another_thread_sends_what_is_not_read(url: str) -> None:
    stream = ExecStream(f"http{url.removeprefix('ws')}", "")
    sent: list[int] = []

    def feed() -> None:
        with contextlib.suppress(Unavailable):
            while True:
                stream.send(PIECE)
                sent.append(1)

    feeding = threading.Thread(target=feed, daemon=True)
    feeding.start()
    before = -1
    while before < len(sent):
        before = len(sent)
        time.sleep(1)
    stream.close()
    feeding.join(PATIENCE)
    assert not feeding.is_alive()


async def test_a_stream_is_closed_while_a_task_sends_what_is_not_read(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket_keepalive, "PING_SECONDS", 0.05)  # so that a ping waits behind the input
    async with asyncio.timeout(PATIENCE), AsyncExecStream(f"http{url.removeprefix('ws')}", "", True) as stream:
        with contextlib.suppress(TimeoutError):
            while True:
                async with asyncio.timeout(1):
                    await stream.send(PIECE)
