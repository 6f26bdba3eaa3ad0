"""The channels of one SSH connection: terminals, commands and SFTP in the task, and connections to its ports."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import deque
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import asyncssh

from corral.api.services.tunnel import Tunnel
from corral.api.ssh.task_program import Framed, NoPython, TaskCommand, open_program
from corral.kernel.errors import CorralError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from starlette.requests import HTTPConnection

    from corral.kernel.ids import AttemptId

_MOST_WAITING: Final = 64 * 1024
"""Bytes of a channel that wait for the task, before the client is told to send no more than its window."""
_BROKEN: Final = 255
"""The exit code of a command whose end is not known, which is also that of OpenSSH for its own failures."""
_SHELL: Final = "if command -v bash >/dev/null 2>&1; then exec bash {0}; else exec sh {0}; fi"
_VARIABLE: Final = re.compile(r"LANG|LC_[A-Z]{1,30}|COLORTERM")
"""Variables that a client may set, as in Debian's sshd."""
_MOST_VARIABLES: Final = 20
_LONGEST_VALUE: Final = 200
_LONGEST_COMMAND: Final = 128 * 1024
_SIGNALS: Final = frozenset(
    [
        "ABRT",
        "ALRM",
        "CONT",
        "FPE",
        "HUP",
        "ILL",
        "INT",
        "KILL",
        "PIPE",
        "QUIT",
        "SEGV",
        "STOP",
        "TERM",
        "TSTP",
        "USR1",
        "USR2",
    ]
)
_KEYS: Final = {"INT": b"\x03", "QUIT": b"\x1c", "TSTP": b"\x1a"}
"""The keys of a terminal for signals."""
_TERMINAL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._-]{0,60}")


_log = logging.getLogger("corral.api")


class Holder(Protocol):
    """The connection that channels belong to."""

    @property
    def asked(self) -> HTTPConnection:
        """The call that opened it."""
        ...

    @property
    def attempt(self) -> AttemptId:
        """The attempt of the task."""
        ...

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a channel's work; the connection's end waits for it."""
        ...

    def opened(self, channel: PortChannel) -> None:
        """Keep a channel until its work is over, or the connection ends and cuts it."""
        ...

    def over(self, channel: PortChannel) -> None:
        """Note that a channel's work is over."""
        ...

    async def room(self) -> None:
        """Wait until the client has taken most of what was sent."""
        ...


class _Channel:
    """What arrives on a channel, and when more may be sent on it."""

    def __init__(self, holder: Holder, counted: contextlib.ExitStack) -> None:
        """`counted` counts the channel among the open ones, until it is closed."""
        self._holder, self._counted = holder, counted
        self._arrived: deque[bytes] = deque()
        self._waiting = 0
        self._ended = False
        self._news = asyncio.Event()
        self._may_send = asyncio.Event()
        self._may_send.set()
        self._gone = asyncio.Event()
        self._chan: Any = None

    # -- called by the library

    def connection_made(self, chan: Any) -> None:
        """Take the channel."""
        self._chan = chan

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the channel is closed."""
        self._gone.set()
        self._may_send.set()
        self._news.set()
        self._counted.close()

    def data_received(self, data: bytes, datatype: Any) -> None:
        """Keep data for the task, and take no more while much waits."""
        self._arrived.append(data)
        self._waiting += len(data)
        if self._waiting > _MOST_WAITING:
            self._chan.pause_reading()
        self._news.set()

    def eof_received(self) -> bool:
        """Note the end of what arrives; the other direction goes on."""
        self._ended = True
        self._news.set()
        return True

    def pause_writing(self) -> None:
        """Send nothing until the client has taken what was sent."""
        self._may_send.clear()

    def resume_writing(self) -> None:
        """Send again."""
        self._may_send.set()

    # -- for the work of the channel

    async def _arriving(self) -> bytes:
        """The next bytes; b"" at their end."""
        while not self._arrived:
            if self._ended or self._gone.is_set():
                return b""
            self._news.clear()
            await self._news.wait()
        data = self._arrived.popleft()
        self._waiting -= len(data)
        if self._waiting <= _MOST_WAITING and not self._gone.is_set():
            self._chan.resume_reading()
        return data

    async def _write(self, data: bytes, kind: Any = None) -> None:
        """Send bytes when the client has room for them; those for a channel that is gone are dropped."""
        await self._may_send.wait()
        await self._holder.room()
        if not self._gone.is_set():
            self._chan.write(data, kind)

    async def _until_either(self, outwards: Coroutine[Any, Any, None], inwards: Coroutine[Any, Any, None]) -> bool:
        """Run both until what is written is complete, or the client closes the channel; whether it was complete.

        Raises the CorralError of `outwards`.
        """
        writes, reads = asyncio.create_task(outwards), asyncio.create_task(inwards)
        gone = asyncio.create_task(self._gone.wait())
        try:
            await asyncio.wait({writes, gone}, return_when=asyncio.FIRST_COMPLETED)
            if writes.done():
                writes.result()
            return writes.done()
        finally:
            for task in (writes, reads, gone):
                task.cancel()
            await asyncio.gather(writes, reads, gone, return_exceptions=True)


class CommandChannel(_Channel, asyncssh.SSHServerSession[bytes]):
    """A session: a shell, a command or SFTP, with or without a terminal."""

    def __init__(self, holder: Holder, counted: contextlib.ExitStack) -> None:
        super().__init__(holder, counted)
        self._terminal = ""
        self._size = (0, 0)
        self._command: str | None = None
        self._is_sftp = False
        self._running: TaskCommand | Framed | None = None

    # -- called by the library

    def pty_requested(self, term_type: str, term_size: Any, term_modes: Mapping[int, int]) -> bool:
        """Have a terminal."""
        self._terminal = term_type if _TERMINAL.fullmatch(term_type) else "xterm-256color"
        self._size = (term_size[1], term_size[0])
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        """Pass a new size on to the terminal."""
        self._size = (height, width)
        if self._terminal and isinstance(self._running, TaskCommand):
            self._holder.run(self._resize(self._running))

    def shell_requested(self) -> bool:
        """Run a shell."""
        return True

    def exec_requested(self, command: str) -> bool:
        """Run a command."""
        self._command = command
        return len(command) <= _LONGEST_COMMAND

    def subsystem_requested(self, subsystem: str) -> bool:
        """Serve SFTP, and no other subsystem."""
        self._is_sftp = subsystem == "sftp"
        return self._is_sftp

    def signal_received(self, signal: str) -> None:
        """Pass a signal on to the command."""
        if signal in _SIGNALS and self._running is not None:
            self._holder.run(self._signal(self._running, signal))

    def session_started(self) -> None:
        """Begin the work."""
        self._holder.run(self._serve())

    # -- the work

    async def _serve(self) -> None:
        try:
            code = await self._run()
        except CorralError as error:
            code = await self._fail(error.message)
        except Exception:
            _log.exception("fault in a command by SSH in %s", self._holder.attempt)
            code = await self._fail("The server failed; look into its log.")
        if not self._gone.is_set():
            self._chan.exit(_BROKEN if code is None else code)

    async def _fail(self, sentence: str) -> int:
        """Tell the client why its command ends; the exit code for it."""
        await self._write(f"corral: {sentence}\r\n".encode(), asyncssh.EXTENDED_DATA_STDERR)
        return _BROKEN

    async def _run(self) -> int | None:
        asked, attempt = self._holder.asked, self._holder.attempt
        if self._is_sftp:
            return await self._sftp(*await open_program(asked, attempt, "ssh_files", {}))
        if self._terminal:
            return await self._merged(await TaskCommand.open(asked, attempt, self._words(), tty=True))
        words = ["sh", "-c", _SHELL.format('"$@"'), "sh", *(["-c", self._command] if self._command is not None else [])]
        try:
            return await self._apart(await Framed.open(asked, attempt, {"command": words, "env": self._environment()}))
        except NoPython:
            return await self._merged(await TaskCommand.open(asked, attempt, words))

    def _words(self) -> list[str]:
        """The command line of a session with a terminal."""
        env = [f"{name}={value}" for name, value in {"TERM": self._terminal, **self._environment()}.items()]
        shell = ["-c", self._command] if self._command is not None else ["-i"]
        return ["env", *env, "sh", "-c", _SHELL.format('"$@"'), "sh", *shell]

    def _environment(self) -> dict[str, str]:
        """The variables of the client that are let through."""
        sent = [(name, value) for name, value in self._chan.get_environment().items() if _VARIABLE.fullmatch(name)]
        return {name: value for name, value in sent[:_MOST_VARIABLES] if len(value) <= _LONGEST_VALUE}

    async def _apart(self, program: Framed) -> int | None:
        """Serve a command whose output and errors are apart; its exit code."""
        code: int | None = None

        async def outwards() -> None:
            nonlocal code
            async for kind, content in program.frames():
                if kind == b"x":
                    code = int(content) if content.isdigit() and len(content) < 4 else _BROKEN
                    return
                await self._write(content, asyncssh.EXTENDED_DATA_STDERR if kind == b"r" else None)

        async def inwards() -> None:
            while data := await self._arriving():
                await program.send(data)
            await program.end_input()

        self._running = program
        try:
            if not await self._until_either(outwards(), inwards()):
                await program.hang_up()
        finally:
            self._running = None
            program.close()
        return code

    async def _merged(self, command: TaskCommand) -> int | None:
        """Serve a terminal, or a command in a task without Python; its exit code."""

        async def outwards() -> None:
            async for data in command.output():
                await self._write(data)

        self._running = command
        try:
            await self._resize(command)
            await self._until_either(outwards(), self._feed(command))
        finally:
            self._running = None
            command.close()
        return command.exit_code

    async def _sftp(self, command: TaskCommand, output: Any) -> int | None:
        async def outwards() -> None:
            async for data in output:
                await self._write(data)

        try:
            await self._until_either(outwards(), self._feed(command))
        finally:
            command.close()
        return command.exit_code

    async def _feed(self, command: TaskCommand) -> None:
        while data := await self._arriving():
            await command.send(data)
        await command.end_input()

    async def _resize(self, command: TaskCommand) -> None:
        rows, columns = (min(each, 65535) for each in self._size)
        if self._terminal and rows and columns:
            await command.resize(rows, columns)

    async def _signal(self, running: TaskCommand | Framed, name: str) -> None:
        if isinstance(running, Framed):
            await running.signal(name)
        elif name in _KEYS and self._terminal:
            await running.send(_KEYS[name])
        elif name in ("HUP", "TERM", "KILL"):
            running.close()


class PortChannel(_Channel, asyncssh.SSHTCPSession[bytes]):
    """A connection to a port of the task, by the engine where the task was given it, else by a program in the task."""

    @classmethod
    async def to_given(cls, holder: Holder, counted: contextlib.ExitStack, port: int) -> PortChannel:
        """Connect to a port that the task was given.

        Raises ChannelOpenError.
        """
        tunnel = await _opened(Tunnel.open(holder.asked, holder.attempt, port), counted)
        return cls(holder, counted, tunnel=tunnel)

    @classmethod
    async def to_other(cls, holder: Holder, counted: contextlib.ExitStack, port: int) -> PortChannel:
        """Connect to another port of the task's loopback.

        Raises ChannelOpenError.
        """
        program = await _opened(Framed.open(holder.asked, holder.attempt, {"port": port}), counted)
        frames = program.frames()
        kind, content = await _opened(_first(frames), counted)
        if kind != b"c":
            program.close()
            counted.close()
            said = "".join(each for each in content.decode(errors="replace")[:200] if each.isprintable())
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_CONNECT_FAILED, f"Nothing answers at port {port} of the task ({said})."
            )
        return cls(holder, counted, program=program, frames=frames)

    def __init__(
        self,
        holder: Holder,
        counted: contextlib.ExitStack,
        *,
        tunnel: Tunnel | None = None,
        program: Framed | None = None,
        frames: Any = None,
    ) -> None:
        super().__init__(holder, counted)
        self._tunnel, self._program, self._frames = tunnel, program, frames
        holder.opened(self)

    def session_started(self) -> None:
        """Begin the work."""
        self._holder.run(self._serve())

    def cut(self) -> None:
        """Cut the connection to the port."""
        if self._tunnel is not None:
            self._tunnel.cut()
        if self._program is not None:
            self._program.close()

    async def _serve(self) -> None:
        try:
            if self._tunnel is not None:
                async with self._tunnel as tunnel:
                    await self._until_either(self._from_tunnel(tunnel), self._to_tunnel(tunnel))
            elif self._program is not None:
                await self._until_either(self._from_program(), self._to_program(self._program))
        except CorralError as error:  # the port cannot be reached: the channel ends, as a connection would
            _log.info("a port of %s was not reached: %s", self._holder.attempt, error.message)
        except Exception:
            _log.exception("fault in a forward by SSH to %s", self._holder.attempt)
        finally:
            self.cut()
            self._holder.over(self)
        if not self._gone.is_set():
            self._chan.close()

    async def _from_tunnel(self, tunnel: Tunnel) -> None:
        while data := await tunnel.receive():
            await self._write(data)

    async def _to_tunnel(self, tunnel: Tunnel) -> None:
        while data := await self._arriving():
            await tunnel.send(data)
        await tunnel.end()

    async def _from_program(self) -> None:
        async for kind, content in self._frames:
            if kind == b"z":
                return
            await self._write(content)

    async def _to_program(self, program: Framed) -> None:
        while data := await self._arriving():
            await program.send(data)
        await program.end_input()


async def _first(frames: Any) -> tuple[bytes, bytes]:
    async for kind, content in frames:
        return kind, content
    return b"f", b"its program ended"


async def _opened(work: Awaitable[Any], counted: contextlib.ExitStack) -> Any:
    """The result of opening something for a channel.

    Raises ChannelOpenError in the words of a CorralError; then the channel is not counted any more.
    """
    try:
        return await work
    except CorralError as error:
        counted.close()
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, error.message) from None
    except BaseException:
        counted.close()
        raise
