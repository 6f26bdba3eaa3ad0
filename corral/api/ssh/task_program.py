"""Run programs in a task for channels of SSH: commands beside it, and Corral's own programs brought over their input.

Corral's own are `corral.runtime.ssh_command` and `corral.runtime.ssh_files`. They need a Python 3.7 in the task and
nothing else: no daemon, no port, no file.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import struct
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote, urlencode

from websockets.exceptions import ConnectionClosed

from corral.api.exec import connect_to_control
from corral.kernel.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from websockets.asyncio.client import ClientConnection

    from corral.kernel.ids import AttemptId

_LONGEST_PATH: Final = 8000
"""Characters of a call to control; its HTTP server takes lines of 8 KiB."""
_PIECE: Final = 64 * 1024
_LONGEST_FRAME: Final = 1024 * 1024
_LONGEST_GREETING: Final = 1000
_UNTAKEN: Final = 256 * 1024
"""Bytes of input that may be on their way to a command that does not read them."""
_HANGUP_SECONDS: Final = 6.0
"""Longer than a program in the task waits for its command."""
_SAID: Final = 500

GREETING: Final = b"corral-ssh 1\n"
NO_PYTHON: Final = b"corral-ssh none\n"
_BEGIN: Final = f"""import json, os, struct, sys, zlib
def take(size):
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        piece or os._exit(1)
        data += piece
    return data
def part():
    return take(struct.unpack(">I", take(4))[0])
if sys.version_info < (3, 7):
    os.write(1, {NO_PYTHON!r})
    os._exit(0)
os.write(1, {GREETING!r})
program = dict(__name__="corral_ssh")
exec(zlib.decompress(part()), program)
program["main"](json.loads(part().decode()))
os._exit(0)
"""
_FIND_PYTHON: Final = (
    "for each in python3 /usr/bin/python3 /usr/local/bin/python3; do "
    'command -v "$each" >/dev/null 2>&1 && exec "$each" -ISc "$1"; done; echo corral-ssh none'
)
PROGRAM_WORDS: Final = ("sh", "-c", _FIND_PYTHON, "sh", _BEGIN)
"""The command that greets, and then runs the program that it is sent."""
Program = Literal["ssh_command", "ssh_files"]


class NoPython(Unavailable):
    """The task has no Python that Corral's own programs could run in."""

    def __init__(self) -> None:
        super().__init__("no-python", "The task has no Python 3.7 or later in its PATH, which this needs.")


class TaskCommand:
    """A command beside a task: its input, and its output with its errors in one stream."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.exit_code: int | None = None

    @classmethod
    async def open(
        cls, asked: HTTPConnection, attempt: AttemptId, words: Sequence[str], *, tty: bool = False
    ) -> TaskCommand:
        """Start a command.

        Raises InvalidInput for one that is too long, Unavailable.
        """
        if any("\0" in word for word in words):
            raise InvalidInput("invalid-command", "The command has a NUL character; leave it out.")
        query = urlencode({"cmd": list(words), "tty": str(tty).lower()}, doseq=True)
        path = f"/exec/{quote(attempt, safe='.')}?{query}"
        if len(path) > _LONGEST_PATH:
            raise InvalidInput("long-command", "The command is too long; put it into a file in the task.")
        return cls(await connect_to_control(asked, path))

    async def send(self, data: bytes) -> None:
        """Write input; what a command that has ended would have been given is dropped."""
        with contextlib.suppress(ConnectionClosed):
            for begin in range(0, len(data), _PIECE):
                await self._connection.send(data[begin : begin + _PIECE])

    async def end_input(self) -> None:
        """End the input."""
        with contextlib.suppress(ConnectionClosed):
            await self._connection.send(json.dumps({"eof": True}))

    async def resize(self, rows: int, columns: int) -> None:
        """Set the size of the terminal."""
        with contextlib.suppress(ConnectionClosed):
            await self._connection.send(json.dumps({"resize": [rows, columns]}))

    async def output(self) -> AsyncIterator[bytes]:
        """Yield the output; at the end `exit_code` is set, unless the connection broke.

        Raises Unavailable, in the engine's words, if the command could not be started.
        """
        with contextlib.suppress(ConnectionClosed):
            async for frame in self._connection:
                if isinstance(frame, bytes):
                    yield frame
                    continue
                said = json.loads(frame)
                if isinstance(error := said.get("error"), dict):
                    raise Unavailable("exec-refused", str(error.get("message"))[:_SAID])
                if "exit" in said:
                    self.exit_code = int(said["exit"])

    async def hang_up(self) -> None:
        """End the input, and wait shortly for the command to notice, before it is ended."""
        await self.end_input()
        with contextlib.suppress(TimeoutError, Unavailable):
            async with asyncio.timeout(_HANGUP_SECONDS):
                async for _ in self.output():
                    pass

    def close(self) -> None:
        """Cut the connection, which ends the command."""
        self._connection.transport.abort()


async def open_program(
    asked: HTTPConnection, attempt: AttemptId, program: Program, order: Mapping[str, Any]
) -> tuple[TaskCommand, AsyncIterator[bytes]]:
    """Start one of Corral's own programs in a task; it and its output.

    Raises NoPython, Unavailable.
    """
    command = await TaskCommand.open(asked, attempt, PROGRAM_WORDS)
    try:
        output = command.output()
        said = b""
        async for piece in output:
            said += piece
            if b"\n" in said or len(said) > _LONGEST_GREETING:
                break
        if said.startswith(NO_PYTHON):
            raise NoPython
        if not said.startswith(GREETING):
            shown = "".join(each if each.isprintable() else " " for each in said.decode(errors="replace"))[:_SAID]
            raise Unavailable("exec-refused", f"The task did not start the command: {shown.strip() or 'it ended'}.")
        await command.send(program_input(program, order))
    except BaseException:
        command.close()
        raise
    return command, output


def program_input(program: Program, order: Mapping[str, Any]) -> bytes:
    """What `PROGRAM_WORDS` read first: one of Corral's own programs, and its order."""
    parts = _source(program), json.dumps(order).encode()
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


@functools.cache
def _source(program: Program) -> bytes:
    return zlib.compress(resources.files("corral.runtime").joinpath(f"{program}.py").read_bytes(), 9)


class Framed:
    """Corral's program `ssh_command` in a task: frames to it and from it."""

    def __init__(self, command: TaskCommand, output: AsyncIterator[bytes]) -> None:
        self._command, self._output = command, output
        self._untaken = 0
        self._taken = asyncio.Event()

    @classmethod
    async def open(cls, asked: HTTPConnection, attempt: AttemptId, order: Mapping[str, Any]) -> Framed:
        """Start the program.

        Raises NoPython, Unavailable.
        """
        return cls(*await open_program(asked, attempt, "ssh_command", order))

    async def send(self, data: bytes) -> None:
        """Write input, once the command has taken most of what was written before."""
        for begin in range(0, len(data), _PIECE):
            piece = data[begin : begin + _PIECE]
            while self._untaken > _UNTAKEN:
                self._taken.clear()
                await self._taken.wait()
            self._untaken += len(piece)
            await self._frame(b"i", piece)

    async def end_input(self) -> None:
        """End the input."""
        await self._frame(b"e")

    async def signal(self, name: str) -> None:
        """Send a signal to the command's processes, by its name without `SIG`."""
        await self._frame(b"s", name.encode())

    async def frames(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yield the kind and the content of each frame but those that count input.

        Raises Unavailable for what is no frame.
        """
        data = bytearray()
        async for piece in self._output:
            data += piece
            while len(data) >= 5:
                kind, size = bytes(data[:1]), struct.unpack(">I", data[1:5])[0]
                if kind not in b"cforzax" or size > _LONGEST_FRAME:
                    raise Unavailable("broken-channel", "The command's streams cannot be told apart any more.")
                if len(data) < 5 + size:
                    break
                content = bytes(data[5 : 5 + size])
                del data[: 5 + size]
                if kind == b"a":
                    self._untaken -= int(content) if content.isdigit() and len(content) < 8 else 0
                    self._taken.set()
                else:
                    yield kind, content

    async def hang_up(self) -> None:
        """End the program, which first hangs up on its command."""
        await self._command.hang_up()

    def close(self) -> None:
        """Cut the connection."""
        self._command.close()

    async def _frame(self, kind: bytes, content: bytes = b"") -> None:
        await self._command.send(kind + struct.pack(">I", len(content)) + content)
