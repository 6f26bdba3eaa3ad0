"""Hostile or greedy API clients, each a process of its own: `python -m bench.hostile NAME`.

A client prints `begun` once its load is on, then goes on until it is ended. It reads the server's address from
`CORRAL_URL` and its token from `CORRAL_TOKEN`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import json
import os
import socket
import sys
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import urlsplit

import httpx2

URL = os.environ.get("CORRAL_URL", "")
TOKEN = os.environ.get("CORRAL_TOKEN", "")
LOG_BYTES = 100_000_000
FOLLOWERS, VALIDATIONS, DOCUMENT_BYTES, STARTS = 20, 60, 877_000, 2_000
HALVES, UNREAD, STREAMS = 1_300, 100, 5_000
RACKS, NODES, ROLES = 1_200, 40, 6_000
Load = Callable[[httpx2.AsyncClient], Awaitable[None]]


def begun() -> None:
    """Print that the load is on."""
    print("begun", flush=True)


async def followers(client: httpx2.AsyncClient) -> None:
    """20 followers read a log of 100 MB as fast as the server sends it, again and again."""
    job = await _submit(client, "followed", f"yes {'x' * 99} | head -c {LOG_BYTES}; exec sleep 100000")
    path = f"/api/v3/jobs/{job}/tasks/worker/0/logs"
    await _written(client, path)
    begun()
    await asyncio.gather(*(_read(client, path) for _ in range(FOLLOWERS)))


async def _written(client: httpx2.AsyncClient, path: str) -> None:
    """Wait until the whole log is written."""
    received = 0
    async with client.stream("GET", path, params={"follow": "true"}) as stream:
        async for chunk in stream.aiter_raw():
            received += len(chunk)
            if received >= LOG_BYTES:
                return


async def _length(client: httpx2.AsyncClient, path: str) -> int:
    received = 0
    async with client.stream("GET", path) as stream:
        async for chunk in stream.aiter_raw():
            received += len(chunk)
    return received


async def _read(client: httpx2.AsyncClient, path: str) -> None:
    while True:
        await _length(client, path)


async def validations(client: httpx2.AsyncClient) -> None:
    """60 validations at once of a document of 877 kB."""
    roles = {"worker": {"command": "true", "env": {f"V{at}": "x" * 200 for at in range(DOCUMENT_BYTES // 210)}}}
    document = json.dumps({"name": "large", "framework": "shell", "roles": roles})
    begun()
    await _again(VALIDATIONS, lambda: client.post("/api/v3/validate", content=document, headers=_JSON))


async def starts(client: httpx2.AsyncClient) -> None:
    """2,000 jobs of one task start at once; then the client waits."""
    begun()
    numbers = iter(range(STARTS))

    async def some() -> None:
        for number in numbers:
            await _submit(client, f"starts-{number}", "true")

    await asyncio.gather(*(some() for _ in range(8)))
    await asyncio.Event().wait()


async def headers(client: httpx2.AsyncClient) -> None:
    """8 anonymous connections send endless headers; each is opened again when the server closes it."""
    begun()

    async def endless() -> None:
        while True:
            with contextlib.suppress(OSError):
                _, writer = await _connect()
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n")
                while True:
                    writer.write(b"x-more: " + b"y" * 8_000 + b"\r\n")
                    await writer.drain()

    await asyncio.gather(*(endless() for _ in range(8)))


async def halves(client: httpx2.AsyncClient) -> None:
    """1,300 anonymous connections send half a request each, and wait."""
    begun()

    async def half() -> None:
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await _connect()
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n")
                await reader.read()
                writer.close()
            await asyncio.sleep(1)

    await asyncio.gather(*(half() for _ in range(HALVES)))


async def archives(client: httpx2.AsyncClient) -> None:
    """8 uploads at once of archives with negative sizes, endless names, and a gigabyte in one megabyte."""
    bodies = [_negative(), _long_name(), _bomb()]
    begun()
    await asyncio.gather(
        *(_again(3, lambda body=body: client.put("/api/v3/blobs/code", content=body)) for body in bodies)  # type: ignore[misc]
    )


def _negative() -> bytes:
    """A tar header whose size is -512 in base 256."""
    info = tarfile.TarInfo("a").tobuf(tarfile.USTAR_FORMAT)
    block = bytearray(info)
    block[124:136] = (-512).to_bytes(12, "big", signed=True)
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    return gzip.compress(bytes(block) + bytes(1024))


def _long_name() -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo("n" * 50_000_000))
    return raw.getvalue()


def _bomb() -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        info = tarfile.TarInfo("zeros")
        info.size = 1_000_000_000
        tar.addfile(info, _Zeros())  # type: ignore[arg-type]
    return raw.getvalue()


class _Zeros:
    def read(self, size: int) -> bytes:
        """Return `size` zeros."""
        return bytes(size)


async def unread(client: httpx2.AsyncClient) -> None:
    """100 followers of a log of 100 MB never read a byte of it and reconnect when they are cut off."""
    job = await _submit(client, "unread", f"yes {'x' * 99} | head -c {LOG_BYTES}; exec sleep 100000")
    path = f"/api/v3/jobs/{job}/tasks/worker/0/logs"
    await _written(client, path)
    begun()
    await asyncio.gather(*(_unread(f"{path}?follow=true") for _ in range(UNREAD)))


async def streams(client: httpx2.AsyncClient) -> None:
    """One user opens 5,000 event streams, reads none, and retries every one that is refused."""
    begun()
    await asyncio.gather(*(_unread("/api/v3/events") for _ in range(STREAMS)))


async def _unread(path: str) -> None:
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await _connect(buffer=4096)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
            await asyncio.sleep(5)
            if b" 200 " in await asyncio.wait_for(reader.read(64), 60):
                await asyncio.sleep(60)
            writer.close()
        await asyncio.sleep(1)


async def clusters(client: httpx2.AsyncClient) -> None:
    """4 comparisons at once of a Cluster of 1,200 racks of 40 nodes."""
    racks = {f"r{at}": {"nodes": f"r{at}n[1-{NODES}]"} for at in range(RACKS)}
    text = json.dumps({"kind": "Cluster", "node": {"devices": 8, "cpu": 8, "memory": "8Gi"}, "racks": racks})
    begun()
    await _again(4, lambda: client.post("/api/v3/documents/diff", content=text, headers=_JSON))


async def roles(client: httpx2.AsyncClient) -> None:
    """4 validations at once of a job of 6,000 task roles."""
    many = {f"r{at}": {"command": "true"} for at in range(ROLES)}
    text = json.dumps({"name": "roles", "framework": "shell", "roles": many})
    begun()
    await _again(4, lambda: client.post("/api/v3/validate", content=text, headers=_JSON))


LOADS: dict[str, Load] = {
    load.__name__: load
    for load in (followers, validations, starts, headers, halves, archives, unread, streams, clusters, roles)
}
_JSON = {"Content-Type": "application/json"}


async def _again(at_once: int, call: Callable[[], Awaitable[object]]) -> None:
    """Repeat the call in `at_once` tasks, whatever the server answers."""

    async def caller() -> None:
        while True:
            with contextlib.suppress(httpx2.HTTPError):
                await call()

    await asyncio.gather(*(caller() for _ in range(at_once)))


async def _submit(client: httpx2.AsyncClient, name: str, command: str) -> str:
    resources = {"cpu": "0", "memory": "0"}
    made = {"worker": {"replicas": 1, "command": ["sh", "-c", command], "resources": resources}}
    answer = await client.post("/api/v3/jobs", json={"name": name, "framework": "shell", "roles": made})
    answer.raise_for_status()
    return str(answer.json()["id"])


async def _connect(buffer: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(URL)
    made = socket.socket()
    if buffer:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    made.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(made, (address.hostname or "", address.port or 80))
        return await asyncio.open_connection(sock=made, limit=buffer or 65536)
    except BaseException:
        made.close()
        raise


@contextlib.asynccontextmanager
async def _signed_in() -> AsyncIterator[httpx2.AsyncClient]:
    limits = httpx2.Limits(max_connections=200)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(base_url=URL, headers=bearer, timeout=120, limits=limits, trust_env=False) as client:
        yield client


async def main(name: str) -> None:
    """Run this client until it is ended."""
    async with _signed_in() as client:
        await LOADS[name](client)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1]))
