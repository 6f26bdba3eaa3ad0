"""Run commands in a running pod over one WebSocket with five channels.

Source of the protocol: Kubernetes' remotecommand (`v5.channel.k8s.io`, KEP-4006). The first byte of a message is its
channel: 0 input, 1 output, 2 errors, 3 the end as a Status, 4 the terminal's size, 255 closes the channel that follows.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec

from corral.engines.kubernetes.api.errors import read_status
from corral.engines.kubernetes.api.resources import PODS, Call
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.pods.exit_report import ExitReport
from corral.engines.kubernetes.pods.manifest import pod_name
from corral.engines.kubernetes.pods.template import TASK
from corral.kernel.errors import CorralError, Unavailable
from corral.kernel.ids import AttemptId

_log = logging.getLogger(__name__)
_PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_INPUT, _OUTPUT, _ERRORS, _END, _SIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_PIECE: Final = 32 * 1024
_WAITING: Final = 64
"""Pieces of output that may wait for a reader. More stay with the cluster."""
_EARLY: Final = 64 * 1024
"""Bytes that are kept of what arrives before the shell's first mark."""
_BEGINS_WITHIN: Final = 60.0
"""Seconds for which input waits for the shell: a container runtime that hangs keeps no session whose caller is gone."""
LOST: Final = 255
"""The exit code of a session whose end was not seen."""
_BROKEN: Final = "The connection to the command broke. The command may still run."
_UNKNOWN: Final = "The cluster did not report how the command ended. The end of its output may be missing."
_CUT: Final = "The end of the command's output may be missing."
_NO_SHELL: Final = re.compile(rb"not found|no such file|permission denied|exec format error", re.IGNORECASE)
"""What container runtimes say when they cannot start a program."""


class Connection(NamedTuple):
    """A WebSocket to the API server, and what closes it."""

    stack: AsyncExitStack
    socket: aiohttp.ClientWebSocketResponse


class End(NamedTuple):
    """A session's final Status."""

    code: int | None
    """The exit code; None if the Status has none."""
    message: str = ""


class PodSession:
    """A command beside a task, with or without a terminal. Standard output and errors are merged.

    With a `report` the command runs under a shell that reports its exit code, and only that report counts as success.
    `without_shell` connects to the command itself: the image may have no shell.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        tty: bool,
        report: ExitReport | None,
        without_shell: Callable[[], Awaitable[Connection]],
    ) -> None:
        (self._stack, self._socket), self._tty = connection, tty
        self._report, self._without_shell = report, without_shell
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._output: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
        self._input_open = True
        self._takes_input = asyncio.Event()
        if report is None:
            self._takes_input.set()
        self._early = b""
        self._size = b""
        self._reading = asyncio.create_task(self._read())

    async def send(self, data: bytes) -> None:
        """Write `data` to the command's standard input. Empty bytes end it (on a terminal: Ctrl-D).

        Raises Unavailable when the command takes no more.
        """
        if not data and self._tty:
            data = b"\x04"
        try:
            async with asyncio.timeout(_BEGINS_WITHIN):
                await self._takes_input.wait()
        except TimeoutError:
            await self.close()
            raise Unavailable("session-over", "The command did not begin in time.") from None
        if not self._input_open or self._code.done():
            raise Unavailable("session-over", "The command takes no more input; its input was ended.")
        try:
            if data:
                for at in range(0, len(data), _PIECE):
                    if self._input_open:  # it may be ended between two pieces
                        await self._socket.send_bytes(bytes((_INPUT,)) + data[at : at + _PIECE])
                return
            await self._end_input()
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable("session-over", f"The command takes no more input ({type(error).__name__}).") from None

    async def resize(self, rows: int, columns: int) -> None:
        """Set the size of the command's terminal; no effect without a terminal."""
        if self._tty and not self._code.done():
            self._size = bytes((_SIZE,)) + json.dumps({"Width": columns, "Height": rows}).encode()
            with contextlib.suppress(aiohttp.ClientError, OSError):
                await self._socket.send_bytes(self._size)

    async def output(self) -> AsyncIterator[bytes]:
        """Yield the command's output until it ends. The command waits while nobody reads."""
        while data := await self._output.get():
            yield data
        self._output.put_nowait(b"")

    async def exit_code(self) -> int:
        """Wait for the command's exit code: 128 + signal if a signal ended it, 255 if its end was not seen."""
        return await asyncio.shield(self._code)

    async def close(self) -> None:
        """Close the connection. The kubelet then closes the command's input and output."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self._over(LOST)
        while not self._output.empty():
            self._output.get_nowait()
        self._output.put_nowait(b"")
        await self._stack.aclose()

    async def _end_input(self) -> None:
        if self._input_open:
            self._input_open = False
            if self._socket.protocol == _PROTOCOLS[0]:
                await self._socket.send_bytes(bytes((_CLOSE, _INPUT)))

    async def _read(self) -> None:
        code = LOST
        try:
            end = await self._follow()
            if self._no_shell(end):
                end = await self._follow_without_shell()
            code, why = self._judge(end)
            if self._report is not None:
                await self._pass_on(self._early + self._report.rest())
            if why:
                await self._pass_on(f"corral: {why}\n".encode())
        except Exception:  # the reader of the output waits for its end
            _log.exception("a session in a pod failed")
            await self._pass_on(f"corral: {_BROKEN}\n".encode())
        finally:
            self._over(code)
        await self._output.put(b"")

    async def _follow(self) -> End | None:
        """Pass the output on until the connection ends; return the Status, None if there was none."""
        end = None
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel in (_OUTPUT, _ERRORS):
                await self._receive(data, reports=channel == _OUTPUT)
            elif channel == _END:
                end = end_of(data)
            if not self._tty and self._report is not None and self._report.code is not None:
                if self._socket.protocol != _PROTOCOLS[0]:
                    break  # the input has no end of its own, and the shell waits for it
                with contextlib.suppress(aiohttp.ClientError, OSError):
                    await self._end_input()
        return end

    async def _receive(self, data: bytes, *, reports: bool) -> None:
        report = self._report
        if report is None:
            await self._pass_on(data)
            return
        data = report.feed(data) if reports else data
        if not self._takes_input.is_set():
            self._early += data
            if not report.begun and len(self._early) <= _EARLY:
                return
            data, self._early = self._early, b""
            if report.begun:
                self._takes_input.set()
        await self._pass_on(data)

    async def _pass_on(self, data: bytes) -> None:
        if data:
            await self._output.put(data)

    def _no_shell(self, end: End | None) -> bool:
        """Return whether the container has no shell that could run the command, so that the command has not run."""
        if self._report is None or self._report.begun or end is None or end.code == 0:
            return False
        return _NO_SHELL.search(self._early + end.message.encode()) is not None

    async def _follow_without_shell(self) -> End | None:
        self._report, self._early = None, b""
        await self._stack.aclose()
        try:
            self._stack, self._socket = await self._without_shell()
        except CorralError as error:
            return End(None, error.message)
        if self._size:
            with contextlib.suppress(aiohttp.ClientError, OSError):
                await self._socket.send_bytes(self._size)
        self._takes_input.set()
        return await self._follow()

    def _judge(self, end: End | None) -> tuple[int, str]:
        """Return the exit code, and what to say about it."""
        report = self._report
        if report is not None and report.code is not None:
            return report.code, ""
        if end is None:
            return LOST, _BROKEN
        if end.code is None:
            return LOST, end.message
        if report is None:
            return end.code, ""
        if end.code == 0:
            return LOST, _UNKNOWN
        # A code above 128 is a signal's: it ended the shell before it could report.
        return end.code, "" if end.code > 128 else _CUT

    def _over(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)
        self._takes_input.set()


async def open_session(
    transport: Transport,
    namespace: str,
    attempt: AttemptId,
    argv: Sequence[str],
    *,
    tty: bool,
    reports: bool = True,
) -> PodSession:
    """Run a command in the attempt's container. Raises CorralError.

    `reports`: under a shell that reports its exit code, if the image has one. Otherwise exit code 0 is no proof that
    the command succeeded, because the cluster's word for it may be wrong.
    """
    call = Call("get", PODS, namespace, pod_name(attempt), "exec")
    flags = {
        "container": TASK,
        "stdin": "true",
        "stdout": "true",
        "stderr": str(not tty).lower(),
        "tty": str(tty).lower(),
    }

    async def connect(words: Sequence[str]) -> Connection:
        params = [*flags.items(), *(("command", word) for word in words)]
        async with AsyncExitStack() as stack:
            socket = await stack.enter_async_context(transport.websocket(call, params=params, protocols=_PROTOCOLS))
            return Connection(stack.pop_all(), socket)

    report = ExitReport() if reports else None
    connection = await connect(report.words(argv, tty=tty) if report is not None else argv)
    return PodSession(connection, tty=tty, report=report, without_shell=lambda: connect(argv))


def end_of(data: bytes) -> End:
    """Read a session's final Status: its exit code, or why the command did not run."""
    if _succeeded(data):
        return End(0)
    status = read_status(0, data)
    causes = (status.details.causes if status.details else None) or ()
    code = next((cause.message for cause in causes if cause.reason == "ExitCode"), "")
    if code.isascii() and code.isdigit():
        return End(int(code))
    return End(None, status.message[:1000] or _UNKNOWN)


def _succeeded(data: bytes) -> bool:
    try:
        return msgspec.json.decode(data, type=dict[str, Any]).get("status") == "Success"
    except msgspec.DecodeError:
        return False
