"""Forward connections to a pod's port through the API server, also where the server cannot reach pod addresses.

Source of the protocol: Kubernetes' port forwarding over WebSockets (`v4.channel.k8s.io`, kubelet's `portforward`
package). The first byte of a message is its channel, 0 for data and 1 for errors. The first message of each channel has
the port. One WebSocket carries one TCP connection, without half-closing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Final

import aiohttp

from corral.engines.kubernetes.api.resources import PODS, Call
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.pods.manifest import pod_name
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId

_PROTOCOL: Final = "v4.channel.k8s.io"
_DATA, _ERRORS = 0, 1
_PIECE: Final = 32 * 1024
_PORT_BYTES: Final = 2


class PodConnection:
    """A TCP connection to a port of a pod, as an `ExecSession` without a terminal."""

    def __init__(self, stack: AsyncExitStack, socket: aiohttp.ClientWebSocketResponse, port: int) -> None:
        self._stack, self._socket, self._port = stack, socket, port
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def send(self, data: bytes) -> None:
        """Send bytes; empty bytes have no effect. Raises Unavailable when the other side has gone."""
        try:
            for at in range(0, len(data), _PIECE):
                await self._socket.send_bytes(bytes((_DATA,)) + data[at : at + _PIECE])
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable("connection-over", f"The task takes no more input ({type(error).__name__}).") from None

    async def resize(self, rows: int, columns: int) -> None:
        """Do nothing: there is no terminal."""

    async def output(self) -> AsyncIterator[bytes]:
        """Yield the task's data until it closes the connection.

        Raises Unavailable when nothing listens at the port on the pod's loopback, to which the node connects.
        """
        begun: set[int] = set()
        code = 0
        spoken = False
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel not in begun:
                begun.add(channel)
                data = data[_PORT_BYTES:]
            if channel == _DATA and data:
                spoken = True
                yield data
            elif channel == _ERRORS and data:
                code = 1
                if not spoken and b"refused" in data:
                    self._end(code)
                    raise _refused(self._port)
        self._end(code)

    async def exit_code(self) -> int:
        """Wait for the connection to end. Return 0, or 1 when the port was not reachable or the connection broke."""
        return await asyncio.shield(self._code)

    async def close(self) -> None:
        """Close the connection."""
        self._end(1)
        await self._stack.aclose()

    def _end(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)


async def open_connection(transport: Transport, namespace: str, attempt: AttemptId, port: int) -> PodConnection:
    """Connect to a port of the attempt's pod. Raises CorralError."""
    call = Call("get", PODS, namespace, pod_name(attempt), "portforward")
    async with AsyncExitStack() as stack:
        opened = transport.websocket(call, params=[("ports", str(port))], protocols=(_PROTOCOL,))
        socket = await stack.enter_async_context(opened)
        return PodConnection(stack.pop_all(), socket, port)


def _refused(port: int) -> Unavailable:
    message = (
        f"Nothing answers at port {port} on loopback in the task's pod: is its program up, and does it listen at "
        "127.0.0.1 or 0.0.0.0?"
    )
    return Unavailable("port-closed", message)
