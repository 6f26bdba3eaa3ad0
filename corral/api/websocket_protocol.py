"""The server's WebSocket protocol, with bounds on the memory that one client can use.

uvicorn's own protocol stops reading while a message waits for the application. Three cases escape that: a compressed
message that inflates, fragments without content, and pings whose answers the client does not read. A route whose
messages may be larger says so by `large_messages`; then what is received of one is counted.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from starlette.types import Scope

from corral.kernel.errors import TooManyRequests
from corral.service.watched_socket import UNREAD, WatchedSocket, socket_of

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
    from websockets.frames import Frame

MESSAGE_LIMIT: Final = 256 * 1024
"""Bytes of one message from a client."""
LARGE_MESSAGE_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of one message from a client that is counted."""
_FRAGMENTS: Final = 1024
"""Fragments that one message may consist of."""
_UNANSWERED_PINGS: Final = 1000
"""Pings that a client may send while it leaves what it was sent unread."""
_TOO_BIG: Final = 1009
_TRY_AGAIN: Final = 1013

WEB_SOCKETS: Final[dict[str, Any]] = {"ws_max_size": MESSAGE_LIMIT, "ws_per_message_deflate": False}
"""Options for uvicorn: bounded messages, and no compression."""


class Share(Protocol):
    """Counts the bytes of a message that is not passed on yet."""

    def grow(self, by: int) -> None:
        """Count more. Raises TooManyRequests."""

    def shrink(self, by: int) -> None:
        """Count fewer."""


class BoundedSocket(WatchedSocket):
    """uvicorn's WebSocket protocol that closes a connection which exceeds the bounds."""

    _share: Share | None = None
    _counted = 0
    """Bytes that are counted in the share."""
    _unanswered = 0
    """Pings that were not answered."""
    _whole = 0
    """Bytes of whole messages that are not passed on yet."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """What uvicorn gives its protocol."""
        super().__init__(*args, **options)
        self._sizes: deque[int] = deque()
        """Those of each of these messages: the first one is the application's while `_is_in_hand`."""
        self._is_in_hand = False

    def take_large(self, share: Share | None) -> None:
        """From now on take large messages, counted in a share; with None no more."""
        self._share, self._counted = share, 0
        self.conn.max_message_size = MESSAGE_LIMIT if share is None else LARGE_MESSAGE_LIMIT

    def data_received(self, data: bytes) -> None:
        """Read what the client sent; too much of large messages ends the connection."""
        if self._share is None:
            super().data_received(data)
            return
        try:
            self._share.grow(len(data))
        except TooManyRequests as error:
            self._counted += len(data)
            self._end(_TRY_AGAIN, error.message)
            return
        self._counted += len(data)
        super().data_received(data)
        self._settle()

    def send_receive_event_to_app(self) -> None:
        """Let a whole message wait for the application."""
        size, waiting = sum(map(len, self.frames)), self.queue.qsize()
        super().send_receive_event_to_app()
        if self.queue.qsize() > waiting:
            self._sizes.append(size)
            self._whole += size

    async def receive(self) -> ASGIReceiveEvent:
        """The next message; the one before it was passed on."""
        if self._is_in_hand:
            self._whole -= self._sizes.popleft()
        self._is_in_hand = False
        self._settle()
        message = await super().receive()
        self._is_in_hand = message["type"] == "websocket.receive"
        return message

    def _settle(self) -> None:
        """Count no more than what is held: a client that sends faster than it is read may send without end."""
        held = self._whole + sum(map(len, self.frames)) + len(self.conn.reader.buffer)
        if self._share is not None and self._counted > held:
            self._share.shrink(self._counted - held)
            self._counted = held

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
        """Answer a ping, unless the client leaves what it was sent unread; cut its connection if it pings without end."""
        if self.transport.get_write_buffer_size() <= UNREAD:
            self._unanswered = 0
            super().handle_ping()
            return
        self.conn.data_to_send()
        self._unanswered += 1
        if self._unanswered > _UNANSWERED_PINGS:
            self.transport.abort()

    def _end(self, code: int, reason: str) -> None:
        self.frames = []
        if self.close_sent or self.transport.is_closing():
            return
        self.conn.fail(code, reason)
        self.handle_parser_exception()


@contextlib.contextmanager
def large_messages(scope: Scope, share: Share) -> Iterator[None]:
    """Take large messages of the client of a WebSocket in the block, counted in a share."""
    socket = socket_of(scope)
    if not isinstance(socket, BoundedSocket):
        yield
        return
    socket.take_large(share)
    try:
        yield
    finally:
        socket.take_large(None)
