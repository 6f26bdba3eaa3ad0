"""A server's WebSocket that notices its client's loss although its application does not read what the client sent.

uvicorn reads no further while a message waits for the application. A loop that does not read sees neither a close frame
nor the end of the connection. So this protocol writes to the client from time to time: that fails if it is gone.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveEvent
    from websockets.http11 import Request

LAST_INPUT_SECONDS: Final = 5.0
"""Seconds for which what a client sent is still passed on after it left."""
UNREAD: Final = 64 * 1024
"""Bytes that a client has not read, with which it is sent nothing more than what it asked for."""
_LOOK_SECONDS: Final = 2.0
"""Seconds between two looks at a client whose messages wait."""
_SILENT_SECONDS: Final = 60.0
"""Seconds for which a client's machine may acknowledge nothing; TCP itself waits for 15 minutes."""
_EXTENSION: Final = "corral.socket"
"""The extension of a scope that has its WebSocket."""


class WatchedSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol, which tells of a lost connection also while reading is paused.

    Whatever a client sends shows that it is there: its answers to pings wait behind what it sent before, and a client
    that is slow to read answers late.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        """What uvicorn gives its protocol."""
        super().__init__(*args, **options)
        self.lost = asyncio.Event()
        self._look: asyncio.TimerHandle | None = None
        self._heard = 0.0
        """When the client last sent something, or could first send again, by the loop's clock."""

    def handle_connect(self, event: Request) -> None:
        """Begin the connection; its application finds this object by the scope."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["extensions"] = {**(self.scope.get("extensions") or {}), _EXTENSION: {"socket": self}}

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell those who wait for the loss."""
        super().connection_lost(exc)
        self.lost.set()
        if self._look is not None:
            self._look.cancel()

    def data_received(self, data: bytes) -> None:
        """Read what the client sent."""
        self._heard = self.loop.time()
        super().data_received(data)

    def send_receive_event_to_app(self) -> None:
        """Let a whole message wait for the application, and look after the client from now on."""
        super().send_receive_event_to_app()
        if self.read_paused and self._look is None:
            self._look = self.loop.call_later(_LOOK_SECONDS, self._look_after)

    async def receive(self) -> ASGIReceiveEvent:
        """The next message."""
        message = await super().receive()
        if not self.read_paused:
            self._heard = self.loop.time()
        return message

    def keepalive_timeout(self) -> None:
        """End a connection whose client is silent, unless it is not read or has sent something since the ping."""
        if self.read_paused or self._heard > self.ping_sent_at:
            self.pong_timer = self.pending_ping_payload = None
            self.schedule_ping()
            return
        super().keepalive_timeout()
        self.lost.set()

    def _look_after(self) -> None:
        """Write to a client whose messages wait: a pong that answers nothing, which each client ignores."""
        self._look = None
        if not self.read_paused or self.close_sent or self.transport.is_closing():
            return
        if _is_unreachable(self.transport.get_extra_info("socket")):
            self.transport.abort()
            return
        if self.transport.get_write_buffer_size() <= UNREAD:
            self.conn.send_pong(b"")
            self.transport.write(b"".join(self.conn.data_to_send()))
        self._look = self.loop.call_later(_LOOK_SECONDS, self._look_after)


def _is_unreachable(connected: socket.socket) -> bool:
    """Whether a connection's other machine does not acknowledge what was sent; always False where TCP does not tell.

    TCP_USER_TIMEOUT would also end a connection whose other side has acknowledged all and is slow to read.
    """
    if connected.family not in (socket.AF_INET, socket.AF_INET6) or not hasattr(socket, "TCP_INFO"):
        return False
    info = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 60)
    # tcpi_unacked and tcpi_last_ack_recv of linux/tcp.h
    unacknowledged, milliseconds = struct.unpack_from("=I28xI", info, 24)
    return bool(unacknowledged) and milliseconds > _SILENT_SECONDS * 1000


def socket_of(scope: Mapping[str, Any]) -> WatchedSocket | None:
    """The protocol below a WebSocket; None with another server than this one."""
    found: WatchedSocket | None = (scope.get("extensions") or {}).get(_EXTENSION, {}).get("socket")
    return found


async def until_left(scope: Mapping[str, Any], reader: asyncio.Task[None]) -> None:
    """Wait until the client is lost, and then for its `reader`, at most `LAST_INPUT_SECONDS`."""
    watched = socket_of(scope)
    lost = watched.lost if watched is not None else asyncio.Event()
    await lost.wait()
    await asyncio.wait({reader}, timeout=LAST_INPUT_SECONDS)
