"""The WebSocket protocol that front serves, with bounds on what one client can make it hold.

uvicorn's own protocol stops reading while a message waits for the application. Three things pass that by: a compressed
message that inflates, fragments without content, and pings whose answers nobody reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from websockets.frames import Frame

MESSAGE_LIMIT: Final = 256 * 1024
"""Bytes of one message from a client."""
_FRAGMENTS: Final = 1024
"""Fragments that one message may come in."""
_UNREAD: Final = 64 * 1024
"""Bytes of answers that may wait for a client that does not read, when it pings."""
_TOO_BIG: Final = 1009

WEB_SOCKETS: Final[dict[str, Any]] = {"ws_max_size": MESSAGE_LIMIT, "ws_per_message_deflate": False}
"""What uvicorn is told beside the protocol: nothing is inflated."""


class BoundedSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol that ends a connection whose client makes it hold more than the bounds."""

    def handle_cont(self, event: Frame) -> None:
        """Take a further fragment of a message; too many of them end the connection."""
        if len(self.frames) >= _FRAGMENTS:
            self._end(_TOO_BIG, "The message comes in too many fragments.")
            return
        super().handle_cont(event)

    def handle_ping(self) -> None:
        """Answer a ping; a client that does not read the answers loses the connection."""
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
