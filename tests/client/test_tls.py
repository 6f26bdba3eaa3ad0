"""An untrusted certificate is refused with a remedy; a trusted one works as plain HTTP does."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
import uvicorn
from fastapi import FastAPI

from corral.client import AsyncClient, Client
from corral.kernel.errors import Unavailable


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a server with a certificate, and the file of the authority that signed it."""
    folder: Path = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    app = FastAPI()

    @app.get("/api/v3/version")
    async def version() -> dict[str, str]:
        return {"version": "1", "api": "v3"}

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, ssl_certfile=str(folder / "server.pem")))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}", str(folder / "ca.pem")
        server.should_exit = True
        thread.join()


async def test_a_trusted_certificate_is_taken(secure: tuple[str, str]) -> None:
    url, ca = secure
    with Client(url, ca=ca) as client:
        assert (await asyncio.to_thread(client.version))["api"] == "v3"
    async with AsyncClient(url, ca=ca) as client:
        assert (await client.version())["api"] == "v3"


async def test_a_strangers_certificate_is_refused_naming_the_variable(secure: tuple[str, str]) -> None:
    with Client(secure[0]) as client, pytest.raises(Unavailable, match="CORRAL_CA"):
        await asyncio.to_thread(client.version)
    async with AsyncClient(secure[0]) as client:
        with pytest.raises(Unavailable, match="CORRAL_CA"):
            await client.version()
