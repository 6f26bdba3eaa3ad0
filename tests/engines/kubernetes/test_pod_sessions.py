"""A closed session with a pod leaves no task or connection in control."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from corral.engines.kubernetes.api.access import kubeconfig_access
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.pods.exec_session import LOST, PodSession, open_session
from corral.kernel.ids import JobId, attempt_id
from tests.engines.kubernetes.faulty_server import Answer, kubeconfig, serving

ATTEMPT = attempt_id(JobId("j"), 0, "worker", 0, 0)
OUTPUT = b"\x01"


async def chatty(request: web.Request) -> web.StreamResponse:
    """A command that prints more than anyone reads."""
    socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
    await socket.prepare(request)
    for _ in range(1000):
        await socket.send_bytes(OUTPUT + b"a line\n")
    async for _ in socket:
        pass
    return socket


async def quiet(request: web.Request) -> web.StreamResponse:
    """A command that prints nothing."""
    socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
    await socket.prepare(request)
    async for _ in socket:
        pass
    return socket


@asynccontextmanager
async def entered(folder: Path, command: Answer) -> AsyncIterator[PodSession]:
    """A session with a pod whose command gives this answer."""
    async with serving(command) as server:
        transport = Transport(kubeconfig_access(str(kubeconfig(folder, server.url))))
        await transport.open()
        yield await open_session(transport, "x", ATTEMPT, ["a", "command"], tty=False)
        await transport.close()


async def test_closing_ends_who_waits_for_output(tmp_path: Path) -> None:
    async with entered(tmp_path, quiet) as session, asyncio.timeout(120):
        reading = asyncio.create_task(anext(session.output()))
        await asyncio.sleep(0)  # it is waiting by now
        await session.close()
        with pytest.raises(StopAsyncIteration):
            await reading
        assert await session.exit_code() == LOST


async def test_closing_drops_what_nobody_has_read(tmp_path: Path) -> None:
    async with entered(tmp_path, chatty) as session, asyncio.timeout(120):
        output = session.output()
        assert await anext(output) == b"a line\n"
        await session.close()
        assert [chunk async for chunk in output] == []
        assert await session.exit_code() == LOST
