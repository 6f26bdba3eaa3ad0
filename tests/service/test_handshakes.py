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

from corral.service.mutual_tls import NAME, Kin, make_kin
from corral.service.tls_acceptor import Acceptor, Gate, uvicorns_terms

MOST = 3


class Counting(uvicorn.Server):
    """uvicorn behind a gate."""

    def __init__(self, config: uvicorn.Config, gate: Gate, seconds: float) -> None:
        super().__init__(config)
        self.gate, self.seconds = gate, seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        terms = uvicorns_terms(self, self.gate.enter, self.gate.hand_on, self.seconds)
        self.servers += [Acceptor(each, terms) for each in sockets or ()]  # type: ignore[misc]

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def answering(kin: Kin, gate: Gate, seconds: float = 150.0) -> AsyncIterator[int]:
    """The port of a server for replicas alone, whose handshakes pass the gate."""
    application = Starlette(routes=[Route("/", lambda _: PlainTextResponse("kin"))])
    files = {"ssl_certfile": kin.certificate, "ssl_keyfile": kin.key}
    config = uvicorn.Config(application, log_config=None, lifespan="off", **files)
    config.load()
    config.ssl = kin.of_server()
    server = Counting(config, gate, seconds)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve([listener]))
        yield listener.getsockname()[1]
        server.should_exit = True
        await serving


async def until(gate: Gate, count: int) -> None:
    async with asyncio.timeout(150):
        while gate.count != count:
            await asyncio.sleep(0.01)


@pytest.fixture
def kin(tmp_path: Path) -> Kin:
    return make_kin(b"k" * 32, tmp_path, "control")


async def test_half_handshakes_are_counted_and_those_of_kin_are_not_kept(kin: Kin) -> None:
    gate = Gate(most=100, most_of_address=MOST)
    async with answering(kin, gate) as port:
        limits = httpx2.Limits(max_connections=2 * MOST)
        async with httpx2.AsyncClient(verify=kin.of_client(), limits=limits) as client:

            async def ask() -> str:
                answer = await client.get(f"https://127.0.0.1:{port}/", extensions={"sni_hostname": NAME})
                return answer.text

            for _ in range(2 * MOST):  # each holds an open connection
                assert await ask() == "kin"
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST)]
            await until(gate, MOST)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            assert gate.count == MOST
            assert await ask() == "kin"
            for _, each in (*silent, (reader, writer)):
                each.close()
            await until(gate, 0)


async def test_a_handshake_that_takes_too_long_ends(kin: Kin) -> None:
    gate = Gate()
    async with answering(kin, gate, seconds=0.2) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()
        await until(gate, 0)


async def test_all_addresses_together_have_a_bound() -> None:
    gate = Gate(most=2, most_of_address=2)
    first, second = gate.enter("a"), gate.enter("b")
    assert first is not None and second is not None and gate.enter("c") is None
    first.leave()
    assert gate.enter("c") is not None
