"""Long work runs in a few worker processes, which end when the client disconnects."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from corral.client import Client
from corral.workers.pool import CALLER
from tests.api.harness import Server

PATIENCE = 120.0


def until(true: Callable[[], bool]) -> None:
    """Wait for a state."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def working() -> list[str]:
    """The living worker processes of this process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"corral.workers" in (folder / "cmdline").read_bytes():
                found.append(folder.name)
    return found


@pytest.fixture
def endless(server: Server) -> Iterator[None]:
    """Workers that never finish."""
    real = server.service.context.workers.call

    async def call(_: Any, *__: Any, **___: Any) -> Any:
        return await real(pow, 3, 1 << 40)

    server.service.context.workers.call = call  # type: ignore[method-assign]
    yield
    server.service.context.workers.call = real  # type: ignore[method-assign]


@contextlib.contextmanager
def sent(
    server: Server, token: str, method: str, path: str, body: bytes, send: int | None = None
) -> Iterator[socket.socket]:
    """Start a call without waiting for its answer; only the first `send` bytes of the body are sent."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    lines = (f"{method} {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {token}")
    head = "\r\n".join((*lines, f"Content-Length: {len(body)}", "", ""))
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as opened:
        opened.sendall(head.encode() + body[:send])
        yield opened


@pytest.mark.usefixtures("endless")
def test_the_check_of_an_archive_ends_when_the_client_leaves(server: Server, alice: Client) -> None:
    with sent(server, alice.token, "PUT", "/api/v3/blobs/code", b"an archive"):
        until(lambda: bool(working()))
        assert len(list(server.blobs.root.glob("*.part"))) == 1
        assert httpx2.get(f"{server.url}/healthz").status_code == 200
    until(lambda: not working())
    until(lambda: not list(server.blobs.root.iterdir()))


@pytest.mark.usefixtures("endless")
@pytest.mark.parametrize("path", ["/api/v3/validate", "/api/v3/documents/diff"])
def test_the_reading_of_a_large_document_ends_when_the_client_leaves(server: Server, alice: Client, path: str) -> None:
    with sent(server, alice.token, "POST", path, b"# " + b"x" * 20_000):
        until(lambda: bool(working()))
    until(lambda: not working())


@pytest.mark.usefixtures("endless")
def test_who_sends_too_much_waits_for_their_own_and_when_all_wait_for_others(server: Server) -> None:
    """At most two calls run and sixteen wait, half of them of one user."""
    tokens = [server.token(name) for name in ("ann", "bob", "eve")]

    async def crowd() -> list[set[int]]:
        async with (
            httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE) as client,
            contextlib.AsyncExitStack() as sent,
        ):
            answers: list[set[int]] = []
            for token in tokens:
                headers = {"Authorization": f"Bearer {token}"}
                calls = [
                    asyncio.create_task(client.put("/api/v3/blobs/code", content=b"an archive", headers=headers))
                    for _ in range(10)
                ]
                sent.push_async_callback(_ended, calls)
                done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
                answers.append({call.result().status_code for call in done})
            assert len(working()) <= 2
            return answers

    assert asyncio.run(crowd()) == [{429}, {503}, {503}]
    until(lambda: not working())


@pytest.mark.usefixtures("endless")
def test_a_large_body_is_refused_before_it_is_sent_when_there_is_no_room_for_it(server: Server) -> None:
    token = server.token("ann")

    async def full() -> str:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE, headers=headers) as client:
            calls = [asyncio.create_task(client.put("/api/v3/blobs/code", content=b"an archive")) for _ in range(10)]
            await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            try:
                return await asyncio.to_thread(announced)
            finally:
                await _ended(calls)

    def announced() -> str:
        """The answer to a body of which only the length arrives."""
        with sent(server, token, "POST", "/api/v3/validate", b"x" * 1_000_000, send=0) as call:
            said = b""
            while piece := call.recv(65536):
                said += piece
            return said.decode()

    said = asyncio.run(full())
    assert said.startswith("HTTP/1.1 429") and "too-much-at-once" in said and "connection: close" in said.lower()
    until(lambda: not working())


async def _ended(calls: list[asyncio.Task[Any]]) -> None:
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


def test_large_work_is_counted_for_whoever_called(server: Server) -> None:
    seen: list[str] = []
    real = server.service.context.workers.call

    async def call(function: Any, *arguments: Any, **terms: Any) -> Any:
        seen.append(CALLER.get())
        return await real(function, *arguments, **terms)

    server.service.context.workers.call = call  # type: ignore[method-assign]
    try:
        with Client(server.url, server.token("ann")) as ann:
            ann.validate(json.dumps({"name": "large", "roles": {f"r{at}": {"command": "true"} for at in range(3000)}}))
    finally:
        server.service.context.workers.call = real  # type: ignore[method-assign]
    assert set(seen) == {"user ann"}
