"""The server's WebSocket protocol, with bounds on the memory that one client can use.

uvicorn's own protocol stops reading while a message waits for the application. Three cases escape that: a compressed
message that inflates, fragments without content, and pings whose answers the client does not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent
    from websockets.frames import Frame

MESSAGE_LIMIT: Final = 256 * 1024
"""Bytes of one message from a client."""
_FRAGMENTS: Final = 1024
"""Fragments that one message may consist of."""
_UNREAD: Final = 64 * 1024
"""Bytes of unsent answers with which a further ping ends the connection."""
_TOO_BIG: Final = 1009

WEB_SOCKETS: Final[dict[str, Any]] = {"ws_max_size": MESSAGE_LIMIT, "ws_per_message_deflate": False}
"""Options for uvicorn: bounded messages, and no compression."""


class BoundedSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol that closes a connection which exceeds the bounds."""

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message, and wait until most of it was taken: then its memory is free, too."""
        await super().send(message)
        if message["type"] == "websocket.send":
            await self.writable.wait()

    def handle_cont(self, event: Frame) -> None:
        """Add a fragment of a message; too many fragments end the connection."""
        if len(self.frames) >= _FRAGMENTS:
            self._end(_TOO_BIG, "The message comes in too many fragments.")
            return
        super().handle_cont(event)

    def handle_ping(self) -> None:
        """Answer a ping; cut the connection of a client that does not read the answers."""
        if self.transport.get_write_buffer_size() > _UNREAD:
            self.transport.abort()
            return
        super().handle_ping()

    def _end(self, code: int, reason: str) -> None:
        self.frames = []
        if self.close_sent or self.transport.is_closing():
            return
        self.conn.fail(code, reason)
        self.handle_parser_exception()
