"""uvicorn's HTTP and WebSocket protocols with bounds on size, time and reading speed.

httptools keeps any number of header bytes, for any time. The parser is therefore given data in small pieces, so that a
bound is noticed before much more data is in memory. `sweep` checks times once a second for all connections, which adds
no cost to requests.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from corral.api.connection_limits import ConnectionCounter, ConnectionLimits, Place, ReadSpeed
from corral.api.request_guard import without_tokens
from corral.api.websocket_protocol import WEB_SOCKETS, BoundedSocket

if TYPE_CHECKING:
    from uvicorn.server import ServerState

_PIECE: Final = 16 * 1024
_LAST_LOOK: Final = 0.01
"""Seconds after the keep-alive time in which the event loop reads a request that came while it was busy."""
TOO_SLOW: Final = "You read too slowly, so the server ended this; begin again where it stopped."
_log = logging.getLogger("corral.api")


class Configuration(uvicorn.Config):
    """uvicorn's configuration, with the `ConnectionCounter` that counts its connections."""

    def __init__(self, application: Any, counter: ConnectionCounter, **terms: Any) -> None:
        super().__init__(application, http=BoundedHttp, ws=BoundedWebSocket, **WEB_SOCKETS, **terms)
        self.counter = counter


class _Phase(enum.Enum):
    """The part of a request that a connection's next byte belongs to."""

    IDLE = enum.auto()
    """Between requests: none has begun since the last one ended."""
    HEADERS = enum.auto()
    BODY = enum.auto()


class _TooMuchError(Exception):
    """Raised in the parser's callbacks to stop the parser."""


class _Closing:
    """Aborts a closing connection whose client does not read the remaining data."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = 0.0

    def sweep(self, transport: asyncio.Transport, now: float) -> bool:
        """Return whether the connection is closing; abort it when that takes longer than `seconds`."""
        if not transport.is_closing():
            return False
        self._since = self._since or now
        if now - self._since > self._seconds:
            transport.abort()
        return True


class BoundedHttp(HttpToolsProtocol):
    """An HTTP connection that enforces the bounds."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._counter: ConnectionCounter = cast(Configuration, config).counter
        self._bounds: ConnectionLimits = self._counter.bounds
        self._place: Place | None = None
        self._closing = _Closing(self._bounds.closing_seconds)
        self._read_speed = ReadSpeed(self._bounds)
        self._phase = _Phase.IDLE
        self._since = 0.0
        """Loop time at which the phase began, or at which the server last did not wait for the client."""
        self._refusal: tuple[int, str, str] | None = None
        self._upgraded = False
        self._framing = 0
        """Bytes since the parser last completed headers or a piece of a body."""
        self._moved = False
        self._header_bytes = 0
        self._headers = 0
        self._body_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, or refuse it."""
        super().connection_made(transport)
        self._since = self.loop.time()
        entered = self._place or self._counter.enter(self.client[0] if self.client else "")
        if isinstance(entered, Place):
            self._place = entered
            self.app_state = {**self.app_state, **entered.state()}
            upgraded = functools.partial(BoundedWebSocket, place=entered, closing=self._closing)
            self.ws_protocol_class = upgraded  # type: ignore[assignment]
        else:
            self._refuse(*entered)

    def take(self, place: Place) -> None:
        """Use a place that was counted before the TLS handshake."""
        self._place = place

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        super().connection_lost(exc)
        if self._place is not None:
            self._place.leave()

    def data_received(self, data: bytes) -> None:
        """Parse received data, piece by piece."""
        for begin in range(0, len(data), _PIECE):
            if self._refusal is not None or self._upgraded or self.transport.is_closing():
                return
            self._moved = False
            piece = data[begin : begin + _PIECE]
            super().data_received(piece)
            self._framing = 0 if self._moved or self._phase is _Phase.IDLE else self._framing + len(piece)
            if self._framing > self._bounds.header_bytes:
                self._refuse(*self._too_long())

    def handle_websocket_upgrade(self) -> None:
        """Hand over the connection and its place to the WebSocket protocol."""
        self._upgraded = True
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Refuse data that the parser rejected or that exceeded a bound."""
        self._refuse(*(self._refusal or (400, "bad-request", "This is not an HTTP request.")))

    def on_message_begin(self) -> None:
        """Start a request."""
        super().on_message_begin()
        self._enter(_Phase.HEADERS)
        self._header_bytes = self._headers = self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Add a part of the request's URL."""
        super().on_url(url)
        if len(self.url) > self._bounds.url_bytes:
            message = f"The address of a request may have {self._bounds.url_bytes} bytes."
            self._stop(414, "address-too-long", message)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; drop a trailer, because the application has the headers already."""
        self._headers += 1
        self._header_bytes += len(name) + len(value) + 4
        if self._headers > self._bounds.headers or self._header_bytes > self._bounds.header_bytes:
            self._stop(*self._too_long())
        if self._phase is _Phase.HEADERS:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start to answer."""
        if len(self.pipeline) >= self._bounds.pipelined:
            self._stop(429, "too-many-requests", "Too many requests were sent without waiting for answers.")
        self._enter(_Phase.BODY)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Add a piece of a body."""
        self._moved = True
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request."""
        self._enter(_Phase.IDLE)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request from now on."""
        self._since = self.loop.time() if self._phase is _Phase.IDLE else self._since
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Close the idle connection, unless a request is read before: timers of a busy loop end before it reads."""
        self.timeout_keep_alive_task = self.loop.call_later(_LAST_LOOK, super().timeout_keep_alive_handler)

    def sweep(self, now: float) -> None:
        """Refuse or close the connection if its client takes too long."""
        if self._closing.sweep(self.transport, now):
            return
        if self._read_speed.is_too_slow(self.flow.write_paused, self.transport.get_write_buffer_size(), now):
            self._cut()
            return
        bounds, waited = self._bounds, now - self._since
        if self._phase is _Phase.BODY:
            self._sweep_body(now, waited)
        elif self.flow.read_paused or (self._phase is _Phase.IDLE and self._is_answering()):
            self._since = now
        elif self._phase is _Phase.HEADERS and waited > bounds.header_seconds:
            message = f"The headers of a request must arrive within {bounds.header_seconds:g} seconds."
            self._refuse(408, "request-too-slow", message)
        elif self._phase is _Phase.IDLE and waited > bounds.idle_seconds:
            self.transport.close()

    def _sweep_body(self, now: float, waited: float) -> None:
        bounds = self._bounds
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._since, self._body_bytes = now, 0
        elif waited > bounds.body_seconds:
            if self._body_bytes < bounds.body_bytes or self.cycle.response_complete:
                message = f"A body must bring {bounds.body_bytes} bytes in {bounds.body_seconds:g} seconds."
                self._refuse(408, "request-too-slow", message)
            self._since, self._body_bytes = now, 0

    def _cut(self) -> None:
        """Cut the response to a client that reads too slowly, and wake the tasks that wait to send to it."""
        cycle, words = self.cycle, self._place.closing_message if self._place is not None else b""
        _log.warning("cut a reader of %s who took too little", without_tokens(self.scope["path"]))
        if words and cycle.chunked_encoding:
            self.transport.write(b"%x\r\n%b\r\n" % (len(words), words))  # no last chunk: the response is incomplete
        cycle.disconnected = True
        cycle.message_event.set()
        self.flow.resume_writing()
        self.pipeline.clear()
        self.transport.close()

    def _is_answering(self) -> bool:
        cycle: object = self.cycle  # None before the first request, contrary to uvicorn's annotation
        return cycle is not None and not self.cycle.response_complete

    def _enter(self, phase: _Phase) -> None:
        self._phase, self._since, self._moved = phase, self.loop.time(), True

    def _too_long(self) -> tuple[int, str, str]:
        most = f"{self._bounds.headers} headers and {self._bounds.header_bytes} bytes of them"
        return 431, "headers-too-large", f"A request may have at most {most}."

    def _stop(self, status: int, code: str, message: str) -> None:
        """Make the parser stop with a refusal."""
        self._refusal = status, code, message
        raise _TooMuchError

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Send a refusal, unless another response has begun on this connection, and close it."""
        self._refusal = status, code, message
        if self.transport.is_closing():
            return
        cycle, answering = self.cycle, self._is_answering()
        if not (answering and cycle.response_started):
            body = msgspec.json.encode({"code": code, "message": message})
            head = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\n{'retry-after: 1' if status in (429, 503) else 'cache-control: no-store'}"
                "\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        if answering:
            cycle.disconnected = True
            cycle.message_event.set()
        self.pipeline.clear()
        self.transport.close()


class BoundedWebSocket(BoundedSocket):
    """A WebSocket that keeps the place of its HTTP connection."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        *,
        place: Place,
        closing: _Closing,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._place = place
        self._closing = closing
        self._read_speed = ReadSpeed(cast(Configuration, config).counter.bounds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        super().connection_lost(exc)
        self._place.leave()

    def sweep(self, now: float) -> None:
        """Cut the connection if its client reads too slowly, or does not read the remaining data while it closes."""
        if self._closing.sweep(self.transport, now):
            return
        if self._read_speed.is_too_slow(not self.writable.is_set(), self.transport.get_write_buffer_size(), now):
            _log.warning("cut a reader of %s who took too little", without_tokens(self.scope["path"]))
            self.conn.fail(1013, TOO_SLOW)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            self.queue.put_nowait({"type": "websocket.disconnect", "code": 1013})
            self.writable.set()
            self.transport.close()


def sweep(state: ServerState, now: float) -> None:
    """Check the times of every connection."""
    for connection in list(state.connections):
        if isinstance(connection, BoundedHttp | BoundedWebSocket):
            connection.sweep(now)
