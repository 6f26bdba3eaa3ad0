"""Run commands in a running pod over one WebSocket with five channels.

Source of the protocol: Kubernetes' remotecommand (`v5.channel.k8s.io`, KEP-4006). The first byte of a message is its
channel: 0 input, 1 output, 2 errors, 3 the end as a Status, 4 the terminal's size, 255 closes the channel that follows.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import aiohttp
import msgspec

from corral.engines.kubernetes.api.errors import read_status
from corral.engines.kubernetes.api.resources import PODS, Call
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.pods.manifest import pod_name
from corral.engines.kubernetes.pods.template import TASK
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId

_PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_INPUT, _OUTPUT, _ERRORS, _END, _SIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_PIECE: Final = 32 * 1024
_WAITING: Final = 64
"""Pieces of output that may wait for a reader. More stay with the cluster."""
LOST: Final = 255
"""The exit code of a session whose end was not seen."""


class PodSession:
    """A command beside a task, with or without a terminal. Standard output and errors are merged."""

    def __init__(self, stack: AsyncExitStack, socket: aiohttp.ClientWebSocketResponse, *, tty: bool) -> None:
        self._stack, self._socket, self._tty = stack, socket, tty
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._output: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
        self._input_open = True
        self._reading = asyncio.create_task(self._read())

    async def send(self, data: bytes) -> None:
        """Write `data` to the command's standard input. Empty bytes end it (on a terminal: Ctrl-D).

        Raises Unavailable when the command takes no more.
        """
        if not data and self._tty:
            data = b"\x04"
        if not self._input_open or self._code.done():
            raise Unavailable("session-over", "The command takes no more input; its input was ended.")
        try:
            if data:
                for at in range(0, len(data), _PIECE):
                    await self._socket.send_bytes(bytes((_INPUT,)) + data[at : at + _PIECE])
                return
            self._input_open = False
            if self._socket.protocol == _PROTOCOLS[0]:
                await self._socket.send_bytes(bytes((_CLOSE, _INPUT)))
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable("session-over", f"The command takes no more input ({type(error).__name__}).") from None

    async def resize(self, rows: int, columns: int) -> None:
        """Set the size of the command's terminal; no effect without a terminal."""
        if self._tty and not self._code.done():
            with contextlib.suppress(aiohttp.ClientError, OSError):
                size = json.dumps({"Width": columns, "Height": rows}).encode()
                await self._socket.send_bytes(bytes((_SIZE,)) + size)

    async def output(self) -> AsyncIterator[bytes]:
        """Yield the command's output until it ends. The command waits while nobody reads."""
        while data := await self._output.get():
            yield data
        self._output.put_nowait(b"")

    async def exit_code(self) -> int:
        """Wait for the command's exit code: 128 + signal if a signal ended it, 255 if the connection broke first."""
        return await asyncio.shield(self._code)

    async def close(self) -> None:
        """Close the connection. The kubelet then closes the command's input and output."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        if not self._code.done():
            self._code.set_result(LOST)
        while not self._output.empty():
            self._output.get_nowait()
        self._output.put_nowait(b"")
        await self._stack.aclose()

    async def _read(self) -> None:
        code = LOST
        try:
            async for message in self._socket:
                if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                    continue
                channel, data = message.data[0], message.data[1:]
                if channel in (_OUTPUT, _ERRORS) and data:
                    await self._output.put(data)
                elif channel == _END:
                    code, why = end_of(data)
                    if why:
                        await self._output.put(f"corral: {why}\n".encode())
        finally:
            if not self._code.done():
                self._code.set_result(code)
        await self._output.put(b"")


async def open_session(
    transport: Transport, namespace: str, attempt: AttemptId, argv: Sequence[str], *, tty: bool
) -> PodSession:
    """Run a command in the attempt's container. Raises CorralError."""
    call = Call("get", PODS, namespace, pod_name(attempt), "exec")
    flags = {
        "container": TASK,
        "stdin": "true",
        "stdout": "true",
        "stderr": str(not tty).lower(),
        "tty": str(tty).lower(),
    }
    params = [*flags.items(), *(("command", word) for word in argv)]
    async with AsyncExitStack() as stack:
        socket = await stack.enter_async_context(transport.websocket(call, params=params, protocols=_PROTOCOLS))
        return PodSession(stack.pop_all(), socket, tty=tty)


def end_of(data: bytes) -> tuple[int, str]:
    """Return the exit code from a session's final Status, and why the command did not run, if so."""
    if _succeeded(data):
        return 0, ""
    status = read_status(0, data)
    causes = (status.details.causes if status.details else None) or ()
    told = next((cause.message for cause in causes if cause.reason == "ExitCode"), "")
    if told.isascii() and told.isdigit():
        return int(told), ""
    return LOST, status.message[:1000] or "the cluster did not say how the command ended"


def _succeeded(data: bytes) -> bool:
    try:
        return msgspec.json.decode(data, type=dict[str, Any]).get("status") == "Success"
    except msgspec.DecodeError:
        return False
