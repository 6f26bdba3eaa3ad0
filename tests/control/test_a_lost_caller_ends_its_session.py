"""A session whose command leaves its input unread ends with its caller, and no sooner."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.asyncio.client import ClientConnection, unix_connect

from corral.control.control_api import ControlApi
from corral.kernel.ids import AttemptId
from corral.service import watched_socket
from tests.control.harness import House, PaperEngine, short

PIECE = bytes(60_000)


class DeafSession:
    """A session that takes input only once it may, and says nothing until it is closed."""

    def __init__(self) -> None:
        self.hears, self.closed = asyncio.Event(), asyncio.Event()
        self.taken = 0

    async def send(self, data: bytes) -> None:
        """Take input."""
        await self.hears.wait()
        self.taken += len(data)

    async def resize(self, rows: int, columns: int) -> None:
        """Do nothing."""

    async def output(self) -> AsyncIterator[bytes]:
        """Say that it is there, then nothing to its end."""
        yield b"ready"
        await self.closed.wait()

    async def exit_code(self) -> int:
        """That of a killed command."""
        await self.closed.wait()
        return 137

    async def close(self) -> None:
        """End it."""
        self.closed.set()


class EnteredEngine(PaperEngine):
    """An engine with one such session."""

    session: DeafSession

    async def exec(self, attempt: AttemptId, argv: Any, *, tty: bool) -> Any:
        """Enter a task."""
        return self.session


@pytest_asyncio.fixture
async def engine(tmp_path: Path) -> AsyncIterator[EnteredEngine]:
    """The engine of a control that serves on a socket, and has a task."""
    made = EnteredEngine()
    made.session = DeafSession()
    house = House(tmp_path, made)
    await house.open()
    try:
        control = await house.begin()
        await house.until(await house.submit(short("entered")), "running")
        serving = asyncio.create_task(ControlApi(control, tmp_path / "control.sock")._serve(uds=str(tmp_path / "sock")))
        await until(lambda: (tmp_path / "sock").exists())
        yield made
        made.session.closed.set()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    finally:
        await house.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


async def enter(engine: EnteredEngine, folder: Path) -> ClientConnection:
    (attempt,) = engine.running
    entered = await unix_connect(
        str(folder / "sock"), f"ws://control/exec/{attempt}?cmd=sleep", compression=None, ping_interval=None
    )
    assert await entered.recv() == b"ready"
    return entered


async def fill(entered: ClientConnection) -> int:
    """Send until nothing is taken; the bytes that went off."""
    sent = 0
    try:
        while sent < 64 << 20:
            async with asyncio.timeout(1):
                await entered.send(PIECE)
            sent += len(PIECE)
    except TimeoutError:
        return sent
    pytest.fail("all input is kept in memory")


@pytest.mark.parametrize("leave", ["cut", "close"])
async def test_unread_input_does_not_outlive_its_sender(
    engine: EnteredEngine, tmp_path: Path, leave: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_socket, "LAST_INPUT_SECONDS", 0.2)
    entered = await enter(engine, tmp_path)
    await fill(entered)
    if leave == "cut":
        entered.transport.abort()
    else:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await entered.close()
        entered.transport.abort()
    async with asyncio.timeout(30):
        await engine.session.closed.wait()


async def test_a_command_that_reads_late_gets_all_that_was_sent(
    engine: EnteredEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = WebSocketsSansIOProtocol.schedule_ping
    pings: list[WebSocketsSansIOProtocol] = []

    def often(self: WebSocketsSansIOProtocol) -> None:
        self.ping_interval, self.ping_timeout = 0.05, 0.05
        pings.append(self)
        schedule(self)

    monkeypatch.setattr(WebSocketsSansIOProtocol, "schedule_ping", often)
    entered = await enter(engine, tmp_path)
    sent = await fill(entered)
    seen = len(pings)
    await until(lambda: len(pings) > seen + 5 or engine.session.closed.is_set())
    assert not engine.session.closed.is_set()
    engine.session.hears.set()
    await until(lambda: engine.session.taken >= sent or engine.session.closed.is_set())
    assert not engine.session.closed.is_set()
    await entered.close()
    await engine.session.closed.wait()


async def test_what_was_sent_just_before_the_close_is_still_taken(engine: EnteredEngine, tmp_path: Path) -> None:
    entered = await enter(engine, tmp_path)
    await entered.send(b"first")
    await entered.send(b"last")
    closing = asyncio.create_task(entered.close())
    await until(lambda: closing.done() or entered.state.name == "CLOSING")
    engine.session.hears.set()
    await closing
    async with asyncio.timeout(60):
        await engine.session.closed.wait()
    assert engine.session.taken == len(b"firstlast")
