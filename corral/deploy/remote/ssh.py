"""OpenSSH's own client: one connection a host, host keys pinned in a file of their own, every answer bounded.

Each word of a command is an argument of `ssh`; no text of a user becomes a shell's. Remote commands are constants, and
what they need comes on standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from corral.deploy.checks.connection import Refusal, no_answer, refusal_of, too_much
from corral.deploy.hosts.reader import Host
from corral.kernel.errors import Conflict, NotFound

AT_ONCE: Final = 32
"""Hosts that are worked with at the same time."""
CONNECT_SECONDS: Final = 15
"""Seconds for a connection until its keys are exchanged."""
_READY: Final = "corral-connected"
_MOST_COMPLAINTS: Final = 256 * 1024
"""Bytes that may come on standard error."""
_SSH_FAILED: Final = 255
_PIECE: Final = 64 * 1024
_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None
_LONGEST_SOCKET: Final = 40
"""Characters of a folder whose sockets have names that the system takes (104 with ssh's own part)."""


class NotReached(Exception):
    """A host gave no answer; `refusal` says why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Answer:
    """What a remote command printed, and its exit code."""

    output: bytes
    code: int


class Ssh:
    """Sessions on hosts; use as an async context manager, which ends all connections.

    The first session on a host makes a connection that later ones share. Its process is a child of this one, without
    ControlPersist: a connection in the background would hold the pipes of a session that was killed.
    """

    def __init__(self, known_hosts: Path, keys_folder: Path) -> None:
        program = shutil.which("ssh")
        if program is None:
            raise NotFound("no-ssh", "There is no ssh on PATH: install OpenSSH's client.")
        if any(char in str(known_hosts) for char in "\n\r\x00"):
            raise Conflict("odd-path", "The folder of the list of hosts has a line break in its path.")
        self._program = program
        self._known_hosts = known_hosts
        self._keys_folder = keys_folder
        self._sockets = Path()
        self._connections: dict[str, Session] = {}

    async def __aenter__(self) -> Ssh:
        folder = tempfile.gettempdir()
        self._sockets = Path(
            tempfile.mkdtemp(prefix="corral-", dir=folder if len(folder) < _LONGEST_SOCKET else "/tmp")
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await asyncio.gather(*(connection.end() for connection in self._connections.values()))
        finally:
            shutil.rmtree(self._sockets, ignore_errors=True)

    async def ask(
        self, host: Host, command: str, text: bytes | Iterable[bytes], *, most: int, seconds: float
    ) -> Answer:
        """Run a constant command with `text`, whole or in pieces, on its standard input. Raises NotReached."""
        try:
            async with asyncio.timeout(seconds), self.session(host, command) as session:
                return await session.finish(text, most)
        except TimeoutError:
            raise NotReached(no_answer(host, seconds)) from None

    async def save(self, host: Host, command: str, text: bytes, into: IO[bytes], *, most: int, seconds: float) -> int:
        """Run a constant command with `text` on its standard input, write what it prints to `into`, and return its code.

        Raises NotReached, also where it prints more than `most` bytes.
        """
        try:
            async with asyncio.timeout(seconds), self.session(host, command) as session:
                return await session.save(text, into, most)
        except TimeoutError:
            raise NotReached(no_answer(host, seconds)) from None

    @contextlib.asynccontextmanager
    async def session(self, host: Host, command: str) -> AsyncIterator[Session]:
        """A running remote command, which is ended with the context. Raises NotReached."""
        if host.name not in self._connections:
            await self._connect(host)
        session = await self._start(host, ["ControlMaster=no"], "-T", "--", host.address, command)
        try:
            yield session
        finally:
            if session.running:  # what still runs there ends with the connection alone
                await asyncio.gather(session.end(), self._connections[host.name].end())
            else:
                await session.end()

    async def _connect(self, host: Host) -> None:
        """Make the connection that the sessions on a host share. Raises NotReached."""
        options = ["ControlMaster=yes", "ControlPersist=no", "PermitLocalCommand=yes", f"LocalCommand=echo {_READY}"]
        connection = await self._start(host, options, "-N", "-T", "--", host.address)
        self._connections[host.name] = connection
        while (await connection.line()).strip() != _READY.encode():
            pass

    async def _start(self, host: Host, options: list[str], *words: str) -> Session:
        chosen = [word for option in options for word in ("-o", option)]
        process = await asyncio.create_subprocess_exec(
            self._program, *chosen, *self._words(host), *words,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C"}, start_new_session=True, limit=_PIECE, preexec_fn=_end_with_parent,
        )  # fmt: skip
        return Session(host, process, str(self._known_hosts))

    def _words(self, host: Host) -> list[str]:
        """The options of every call for a host; the user's own configuration may add jump hosts."""
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": str(CONNECT_SECONDS),
            "ServerAliveInterval": "5",
            "ServerAliveCountMax": "3",
            "StrictHostKeyChecking": "accept-new",
            "UserKnownHostsFile": _quoted(self._known_hosts),
            "GlobalKnownHostsFile": "/dev/null",
            "HostKeyAlias": host.name,
            "HashKnownHosts": "no",
            "CheckHostIP": "no",
            "UpdateHostKeys": "no",
            "VerifyHostKeyDNS": "no",
            "ControlPath": _quoted(self._sockets / "%C", tokens=True),
            "ClearAllForwardings": "yes",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "PermitLocalCommand": "no",
            "RemoteCommand": "none",
            "LogLevel": "INFO",
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        words += ["-p", str(host.access.port), *(["-l", host.access.user] if host.access.user else [])]
        if host.access.key:
            words += ["-o", "IdentitiesOnly=yes", "-o", f"IdentityFile={_quoted(self._key(host))}"]
        return words

    def _key(self, host: Host) -> Path:
        return self._keys_folder / Path(host.access.key).expanduser()


class Session:
    """A process of ssh: a remote command that runs, or the connection that such share."""

    def __init__(self, host: Host, process: asyncio.subprocess.Process, known_hosts: str) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._host, self._process, self._known_hosts = host, process, known_hosts
        self._stdin, self._stdout = process.stdin, process.stdout
        self._complaints = asyncio.create_task(self._bounded(process.stderr, _MOST_COMPLAINTS))

    async def finish(self, text: bytes | Iterable[bytes], most: int) -> Answer:
        """Send `text`, and return what the command printed. Raises NotReached."""
        for piece in (text,) if isinstance(text, bytes) else text:
            await self.send(piece)
        with contextlib.suppress(OSError):
            self._stdin.close()
        output = await self._bounded(self._stdout, most)
        if output is None:
            raise NotReached(too_much(self._host, most))
        return Answer(output, await self._code())

    async def save(self, text: bytes, into: IO[bytes], most: int) -> int:
        """Send `text`, write what the command prints to `into`, and return its exit code. Raises NotReached."""
        await self.send(text)
        with contextlib.suppress(OSError):
            self._stdin.close()
        size = 0
        while piece := await self._stdout.read(_PIECE):
            size += len(piece)
            if size > most:
                raise NotReached(too_much(self._host, most))
            into.write(piece)
        return await self._code()

    async def send(self, text: bytes) -> None:
        """Write to the command's standard input; a command that has ended already is seen by its exit code."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._stdin.write(text)
            await self._stdin.drain()

    async def line(self) -> bytes:
        """The next line that it prints; b"" at its end. Raises NotReached for one that is too long, or a lost host."""
        try:
            line = await self._stdout.readline()
        except ValueError:
            raise NotReached(too_much(self._host, _PIECE)) from None
        if not line:
            await self._code()
        return line

    async def _code(self) -> int:
        """The exit code. Raises NotReached where ssh itself failed."""
        complaint = await self._complaints
        code = await self._process.wait()
        if complaint is None:
            raise NotReached(too_much(self._host, _MOST_COMPLAINTS))
        if code == _SSH_FAILED:
            raise NotReached(refusal_of(self._host, complaint.decode(errors="replace"), self._known_hosts))
        return code

    @property
    def running(self) -> bool:
        """Whether its process has not ended yet."""
        return self._process.returncode is None

    async def end(self) -> None:
        """Kill the session if it runs, and read its pipes to their ends: asyncio waits for both."""
        self._kill()
        await self._bounded(self._stdout, 0)
        await self._complaints
        await self._process.wait()

    async def _bounded(self, stream: asyncio.StreamReader, most: int) -> bytes | None:
        """All that a stream has. With more than `most` bytes the session is killed, and the result is None."""
        pieces: list[bytes] = []
        size = 0
        while piece := await stream.read(_PIECE):
            size += len(piece)
            if size > most:
                self._kill()
                pieces.clear()
            else:
                pieces.append(piece)
        return b"".join(pieces) if size <= most else None

    def _kill(self) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()


def as_root(host: Host) -> str:
    """What a remote command begins with to run as root."""
    return "exec " if host.access.user == "root" else "exec sudo -n "


def _end_with_parent() -> None:
    """Let this process be ended with the one that started it, also by kill -9; other systems than Linux cannot."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _quoted(path: Path, *, tokens: bool = False) -> str:
    """A path as a value of ssh's options, which have quotation marks, and tokens that begin with a percent sign."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text if tokens else text.replace("%", "%%")}"'
