"""A fake API server with faults that a real one cannot be made to show, over real sockets on loopback."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Answers each request with the next entry of `script`; the last one repeats."""

    def __init__(self, *script: Answer) -> None:
        self.script = list(script)
        self.seen: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.port = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The next answer of the script."""
        self.seen.append(request)
        self.bodies.append(await request.read())
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return await answer(request)

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(*script: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """The server with this script."""
    server = Server(*script)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


def json(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """An answer with this document."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(document, status=status, headers=headers)

    return answer


def refused(
    code: int, message: str = "", *, reason: str = "", headers: dict[str, str] | None = None, **details: Any
) -> Answer:
    """A Status as an API server writes it."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return json({**status, "reason": reason, "details": details, "code": code}, status=code, headers=headers)


def raw(*chunks: bytes, then: str = "end", headers: dict[str, str] | None = None) -> Answer:
    """A stream of these chunks, which then ends, breaks off or stays silent."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        response.enable_chunked_encoding()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if then == "break":
            assert request.transport is not None
            request.transport.abort()
        if then == "silence":
            await asyncio.Event().wait()
        return response

    return answer


async def broken(request: web.Request) -> web.StreamResponse:
    """Cut the connection instead of an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def silent(_: web.Request) -> web.StreamResponse:
    """Never answer."""
    await asyncio.Event().wait()
    return web.Response()


def kubeconfig(folder: Path, url: str, user: dict[str, Any] | None = None, name: str = "config") -> Path:
    """A kubeconfig file for one cluster and one user."""
    path = folder / name
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "test", "user": "me"}}],
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "users": [{"name": "me", "user": user or {"token": "secret-one"}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path
