"""Why: front needs three small things that no room below may know: a given socket, a door to control, the page."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from corral.kernel.errors import CorralError, Unavailable
from corral.settings import Settings
from corral.supervisor import LISTEN_FD, listen

_ASK_SECONDS = 10.0


class Server(uvicorn.Server):
    """uvicorn on a socket that may be the supervisor's; it says when it serves, and leaves signals to the process."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def serve_on(self, listener: socket.socket) -> None:
        """Serve until cancelled, then finish the answers under way."""
        serving = asyncio.create_task(self.serve(sockets=[listener]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self.should_exit = True
            await serving
            raise


class ControlSocket:
    """Control's questions over its Unix socket."""

    def __init__(self, path: Path) -> None:
        self._client = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(uds=str(path)), base_url="http://control", timeout=_ASK_SECONDS
        )

    async def ask(self, path: str, body: Any = None) -> Any:
        """The JSON answer of control to a GET (or, with a body, a POST) of `path`.

        Raises Unavailable when no control answers, CorralError when it refuses.
        """
        try:
            if body is None:
                answer = await self._client.get(path)
            else:
                answer = await self._client.post(path, json=body)
        except httpx2.HTTPError:
            message = "The scheduler does not answer; try again in a moment."
            raise Unavailable("no-control", message, retry_after=2) from None
        said = answer.json()
        if answer.status_code == 503:
            raise Unavailable(said["code"], said["message"], retry_after=2)
        if answer.status_code >= 400:
            raise CorralError(said["code"], said["message"])
        return said

    async def close(self) -> None:
        """Let the connections go."""
        await self._client.aclose()


def listener_of(settings: Settings) -> socket.socket:
    """The supervisor's socket when there is one, else a new one."""
    handle = os.environ.pop(LISTEN_FD, "")
    return socket.socket(fileno=int(handle)) if handle else listen(settings.host, settings.port)


def portal_folder() -> Path:
    """Where the built page is, if it was built."""
    return Path(str(files("corral.portal"))) / "static"
