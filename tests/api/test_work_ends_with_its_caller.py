"""What takes long is done in processes of its own, which end when the client leaves and of which there are few."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from corral.client import Client
from tests.api.harness import Server

PATIENCE = 120.0


def until(true: Callable[[], bool]) -> None:
    """Wait for a state."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def working() -> list[str]:
    """The worker processes of this one that live."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"corral.workers" in (folder / "cmdline").read_bytes():
                found.append(folder.name)
    return found


@pytest.fixture
def endless(server: Server) -> Iterator[None]:
    """Workers that find no end whatever they are given."""
    real = server.service.workers.call

    async def call(_: Any, *__: Any, **___: Any) -> Any:
        return await real(pow, 3, 1 << 40)

    server.service.workers.call = call  # type: ignore[method-assign]
    yield
    server.service.workers.call = real  # type: ignore[method-assign]


@contextlib.contextmanager
def sent(server: Server, token: str, method: str, path: str, body: bytes) -> Iterator[socket.socket]:
    """A call whose answer is not waited for."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    lines = (f"{method} {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {token}")
    head = "\r\n".join((*lines, f"Content-Length: {len(body)}", "", ""))
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as opened:
        opened.sendall(head.encode() + body)
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
def test_more_than_a_few_that_wait_are_asked_to_come_again(server: Server, alice: Client) -> None:
    async def crowd() -> list[int]:
        headers = {"Authorization": f"Bearer {alice.token}"}
        async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=PATIENCE) as client:
            calls = [asyncio.create_task(client.put("/api/v3/blobs/code", content=b"an archive")) for _ in range(20)]
            done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            assert len(working()) <= 2
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            return [call.result().status_code for call in done]

    assert set(asyncio.run(crowd())) == {503}
    until(lambda: not working())
