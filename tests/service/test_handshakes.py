"""TLS handshakes between replicas: unfinished ones of strangers are limited, those of replicas are not."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from corral.service.mutual_tls import NAME, TlsFiles, write_tls_files
from corral.service.tls_acceptor import Acceptor, HandshakeLimit, acceptor_settings

MOST = 3


class Counting(uvicorn.Server):
    """uvicorn behind a gate."""

    def __init__(self, config: uvicorn.Config, limit: HandshakeLimit, seconds: float) -> None:
        super().__init__(config)
        self.limit, self.seconds = limit, seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        settings = acceptor_settings(self, self.limit.enter, self.limit.hand_on, self.seconds)
        self.servers += [Acceptor(each, settings) for each in sockets or ()]  # type: ignore[misc]

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def answering(tls_files: TlsFiles, limit: HandshakeLimit, seconds: float = 150.0) -> AsyncIterator[int]:
    """The port of a server for replicas alone, whose handshakes pass the gate."""
    application = Starlette(routes=[Route("/", lambda _: PlainTextResponse("kin"))])
    files = {"ssl_certfile": tls_files.certificate, "ssl_keyfile": tls_files.key}
    config = uvicorn.Config(application, log_config=None, lifespan="off", **files)
    config.load()
    config.ssl = tls_files.server_context()
    server = Counting(config, limit, seconds)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve([listener]))
        yield listener.getsockname()[1]
        server.should_exit = True
        await serving


async def until(limit: HandshakeLimit, count: int) -> None:
    async with asyncio.timeout(150):
        while limit.count != count:
            await asyncio.sleep(0.01)


@pytest.fixture
def tls_files(tmp_path: Path) -> TlsFiles:
    return write_tls_files(b"k" * 32, tmp_path, "control")


async def test_half_handshakes_are_counted_and_those_of_kin_are_not_kept(tls_files: TlsFiles) -> None:
    limit = HandshakeLimit(most=100, most_of_address=MOST)
    async with answering(tls_files, limit) as port:
        limits = httpx2.Limits(max_connections=2 * MOST)
        async with httpx2.AsyncClient(verify=tls_files.client_context(), limits=limits) as client:

            async def ask() -> str:
                answer = await client.get(f"https://127.0.0.1:{port}/", extensions={"sni_hostname": NAME})
                return answer.text

            for _ in range(2 * MOST):  # each holds an open connection
                assert await ask() == "kin"
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST)]
            await until(limit, MOST)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            assert limit.count == MOST
            assert await ask() == "kin"
            for _, each in (*silent, (reader, writer)):
                each.close()
            await until(limit, 0)


async def test_a_handshake_that_takes_too_long_ends(tls_files: TlsFiles) -> None:
    limit = HandshakeLimit()
    async with answering(tls_files, limit, seconds=0.2) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()
        await until(limit, 0)


async def test_all_addresses_together_have_a_bound() -> None:
    limit = HandshakeLimit(most=2, most_of_address=2)
    first, second = limit.enter("a"), limit.enter("b")
    assert first is not None and second is not None and limit.enter("c") is None
    first.leave()
    assert limit.enter("c") is not None
