"""A session with a task ends when the caller disconnects, whether or not the command reads its input."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from starlette.types import Message
from starlette.websockets import WebSocket

from corral.control.exec_relay import carry
from corral.kernel.errors import Unavailable


class Command:
    """A command that prints nothing and, once `deaf`, reads no input."""

    def __init__(self) -> None:
        self.deaf = False
        self.heard: list[Any] = []
        self.closed = asyncio.Event()

    async def send(self, data: bytes) -> None:
        if self.deaf:
            raise Unavailable("session-over", "The command takes no more input.")
        self.heard.append(data)

    async def resize(self, rows: int, columns: int) -> None:
        self.heard.append((rows, columns))

    async def output(self) -> AsyncIterator[bytes]:
        await self.closed.wait()
        for _ in ():
            yield b""

    async def exit_code(self) -> int:
        return 137

    async def close(self) -> None:
        self.closed.set()


class Caller:
    """The caller's end of the WebSocket, and the frames that it received."""

    def __init__(self, command: Command) -> None:
        self._frames: asyncio.Queue[Message] = asyncio.Queue()
        self.told: list[Any] = []
        self.says({"type": "websocket.connect"})
        self.carrying = asyncio.create_task(self._carry(command))

    def says(self, frame: Message) -> None:
        """Send a frame."""
        self._frames.put_nowait(frame)

    async def _carry(self, command: Command) -> None:
        socket = WebSocket({"type": "websocket"}, self._frames.get, self._hear)
        await socket.accept()
        await carry(socket, command)

    async def _hear(self, message: Message) -> None:
        if "text" in message:
            self.told.append(json.loads(message["text"]))


@pytest_asyncio.fixture
async def command() -> Command:
    return Command()


@pytest_asyncio.fixture
async def caller(command: Command) -> AsyncIterator[Caller]:
    made = Caller(command)
    yield made
    made.carrying.cancel()
    await asyncio.gather(made.carrying, return_exceptions=True)


async def test_bytes_sizes_and_the_end_of_the_input_reach_the_command(caller: Caller, command: Command) -> None:
    caller.says({"type": "websocket.receive", "bytes": b"ls\n"})
    caller.says({"type": "websocket.receive", "text": '{"resize": [24, 80]}'})
    caller.says({"type": "websocket.receive", "text": '{"eof": true}'})
    caller.says({"type": "websocket.disconnect"})
    async with asyncio.timeout(120):
        await caller.carrying
    assert command.heard == [b"ls\n", (24, 80), b""]


async def test_a_caller_who_leaves_is_noticed_after_the_command_took_no_more_input(
    caller: Caller, command: Command
) -> None:
    command.deaf = True
    caller.says({"type": "websocket.receive", "bytes": b"anybody?\n"})
    caller.says({"type": "websocket.disconnect"})
    async with asyncio.timeout(120):
        await caller.carrying
    assert command.closed.is_set()


@pytest.mark.parametrize("text", ["{", "[]", '{"resize": 3}', '{"resize": [1, "2"]}', '{"resize": [-1, 80]}', ""])
async def test_a_frame_that_nobody_understands_ends_the_session_with_a_sentence(
    caller: Caller, command: Command, text: str
) -> None:
    caller.says({"type": "websocket.receive", "text": text})
    async with asyncio.timeout(120):
        await caller.carrying
    assert command.closed.is_set()
    assert caller.told[0]["error"]["code"] == "bad-frame"
