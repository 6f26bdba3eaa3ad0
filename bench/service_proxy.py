"""The way of a browser to a service of a job, beside nginx as a proxy of the same service in the same run.

Each is asked through kept connections: 1 kB over one connection for the time of an answer, 1 kB over eight at once for
the rate, and 64 MiB for bytes a second. The turns alternate, and medians are told.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httpx2
import uvloop

from bench.harness import Server, running_server
from bench.service_target import LARGE, SMALL
from bench.stats import median
from tests.reserved import free_port

TURNS: Final = 5
CONNECTIONS: Final = 8
ALONE_ANSWERS: Final = 400
ANSWERS: Final = 2_000
_PATIENCE_SECONDS: Final = 30.0


class Way(NamedTuple):
    """One way to the service: where its server listens, and the head of a request by it."""

    port: int
    prefix: str
    headers: str = "Host: localhost\r\n"

    def request(self, path: str) -> bytes:
        """The bytes of a request."""
        return f"GET {self.prefix}{path} HTTP/1.1\r\n{self.headers}\r\n".encode()


def measure() -> dict[str, float]:
    """Parts of nginx's rates, and milliseconds that an answer takes more than straight from the service.

    Raises RuntimeError if nginx is not installed.
    """
    if shutil.which("nginx") is None:
        raise RuntimeError("nginx is not installed; Debian has it in the package nginx-light")
    with running_server() as server, server.client() as client:
        job, port = _started(client)
        ways = {"straight": Way(port, ""), "corral": _by_corral(server, client, job)}
        with _nginx(port) as other:
            ways["nginx"] = Way(other, "")
            return uvloop.run(_compared(ways))


async def _compared(ways: dict[str, Way]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    bytes_: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TURNS):
        for name, way in ways.items():
            times[name].append(await _alone(way))
            rates[name].append(await _rate(way))
            bytes_[name].append(await _megabytes(way))
    found = {name: (median(times[name]), median(rates[name]), median(bytes_[name])) for name in ways}
    corral, nginx, straight = found["corral"], found["nginx"], found["straight"]
    return {
        "added": (corral[0] - straight[0]) * 1000,
        "rate": corral[1] / nginx[1],
        "bytes": corral[2] / nginx[2],
        "rate-corral": corral[1],
        "rate-nginx": nginx[1],
        "rate-straight": straight[1],
        "mb-corral": corral[2],
        "mb-nginx": nginx[2],
        "mb-straight": straight[2],
    }


async def _alone(way: Way) -> float:
    """Seconds of an answer of 1 kB over one connection, the median."""
    seconds = []
    async with _connected(way) as (reader, writer):
        for _ in range(ALONE_ANSWERS):
            begun = time.perf_counter()
            await _ask(way, "/small", reader, writer)
            seconds.append(time.perf_counter() - begun)
    return median(seconds)


async def _rate(way: Way) -> float:
    """Answers a second over all connections."""

    async def turn() -> None:
        async with _connected(way) as (reader, writer):
            for _ in range(ANSWERS // CONNECTIONS):
                await _ask(way, "/small", reader, writer)

    begun = time.perf_counter()
    await asyncio.gather(*(turn() for _ in range(CONNECTIONS)))
    return ANSWERS / (time.perf_counter() - begun)


async def _megabytes(way: Way) -> float:
    """Megabytes a second of one large answer."""
    async with _connected(way) as (reader, writer):
        begun = time.perf_counter()
        length = await _ask(way, "/large", reader, writer)
        return length / 1e6 / (time.perf_counter() - begun)


async def _ask(way: Way, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """Ask once and read the whole answer; its bytes."""
    writer.write(way.request(path))
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    expected = LARGE if path == "/large" else len(SMALL)
    if not head.startswith("http/1.1 200 ") or f"content-length: {expected}\r\n" not in head:
        raise RuntimeError(f"an unexpected answer: {head[:300]}")
    left = expected
    while left:
        piece = await reader.read(min(left, 1024 * 1024))
        if not piece:
            raise RuntimeError("the answer broke off")
        left -= len(piece)
    return expected


@contextlib.asynccontextmanager
async def _connected(way: Way) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", way.port, limit=4 * 1024 * 1024)
    try:
        yield reader, writer
    finally:
        writer.close()


def _started(client: httpx2.Client) -> tuple[str, int]:
    """Start the service as a job; its id and its port."""
    program = Path(__file__).with_name("service_target.py")
    folder = Path(__file__).resolve().parents[1]
    document = {
        "name": "served",
        "env": {"PYTHONPATH": str(folder)},
        "roles": {"main": {"command": f"exec {sys.executable} {program}", "ports": ["web"]}},
    }
    answer = client.post("/api/v3/jobs", json=document)
    if answer.status_code != 201:
        raise RuntimeError(answer.text)
    job = str(answer.json()["id"])
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        services = client.get(f"/api/v3/jobs/{job}/services").raise_for_status().json()
        for each in services["items"]:
            port = int(each["port"])
            with contextlib.suppress(httpx2.TransportError):
                if httpx2.get(f"http://127.0.0.1:{port}/small", trust_env=False).content == SMALL:
                    return job, port
        time.sleep(0.05)
    raise RuntimeError("the service did not answer within half a minute")


def _by_corral(server: Server, client: httpx2.Client, job: str) -> Way:
    """Open the service as a browser does, and return the way with its cookie."""
    opened = client.post(f"/api/v3/jobs/{job}/services/main/0/web")
    opened.raise_for_status()
    address = urlsplit(opened.json()["url"])
    port = urlsplit(server.url).port
    assert port
    with httpx2.Client(base_url=server.url, headers={"Host": address.netloc}, trust_env=False) as browser:
        found = browser.get(f"{address.path}?{address.query}")
    cookie = found.headers["set-cookie"].partition(";")[0]
    return Way(port, f"/proxy/{job}/main-0/web", f"Host: {address.netloc}\r\nCookie: {cookie}\r\n")


@contextlib.contextmanager
def _nginx(upstream: int) -> Iterator[int]:
    """Run nginx before the service, with kept connections to it; the port."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as folder:
        settings = Path(folder) / "nginx.conf"
        settings.write_text(_CONFIGURATION.format(folder=folder, port=port, upstream=upstream))
        process = subprocess.Popen(["nginx", "-p", folder, "-c", str(settings)], stderr=subprocess.PIPE, text=True)
        try:
            _wait_for(process, port)
            yield port
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(process: subprocess.Popen[str], port: int) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            assert process.stderr
            raise RuntimeError(f"nginx ended: {process.stderr.read()[:1000]}")
        with contextlib.suppress(httpx2.TransportError):
            httpx2.get(f"http://127.0.0.1:{port}/small", trust_env=False)
            return
        time.sleep(0.05)
    raise RuntimeError("nginx did not answer within half a minute")


_CONFIGURATION: Final = """
daemon off;
worker_processes 2;
pid {folder}/pid;
error_log stderr;
events {{ worker_connections 256; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream service {{ server 127.0.0.1:{upstream}; keepalive 32; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://service;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_max_temp_file_size 0;
        }}
    }}
}}
"""
