"""One WebSocket of a browser, passed on to a service of a job message by message, over a byte stream."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from starlette.types import Message, Receive, Scope, Send
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from corral.api.services.headers import Header, Place
from corral.api.services.http_exchange import BadGateway
from corral.api.services.message_memory import MessageShare
from corral.api.services.tunnel import Tunnel
from corral.kernel.errors import TooManyRequests

MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one message of a service. Those of browsers are bounded by `corral.api.websocket_protocol`."""
_PIECE: Final = 64 * 1024
"""Bytes that are sent to a task at once: control takes no large messages."""
_FRAGMENTS: Final = 1024
_HANDSHAKE_SECONDS: Final = 30.0
_TOO_BIG: Final = 1009
_GONE: Final = 1001
_TRY_AGAIN: Final = 1013
_WRITTEN: Final = frozenset(
    {
        b"host", b"connection", b"upgrade", b"sec-websocket-key", b"sec-websocket-version",
        b"sec-websocket-extensions", b"sec-websocket-protocol",
    }
)  # fmt: skip
"""Headers that the handshake's library writes."""


class WebSocketExchange:
    """The two halves of one WebSocket."""

    def __init__(
        self, tunnel: Tunnel, place: Place, target: bytes, subprotocols: Sequence[str], memory: MessageShare
    ) -> None:
        self._tunnel = tunnel
        self._memory = memory
        self._protocol = ClientProtocol(
            parse_uri(f"ws://{place.host}{target.decode('latin-1')}"),
            subprotocols=[Subprotocol(each) for each in subprotocols] or None,
            max_size=MESSAGE_BYTES,
        )
        self._fragments: list[bytes] = []
        self._text = False
        self._ended_with = _GONE
        """The code for the browser where the service sent none."""

    async def pass_on(self, headers: Sequence[Header], receive: Receive, send: Send) -> None:
        """Open the service's WebSocket, accept the browser's, and pass messages on until either ends.

        Raises BadGateway, Unavailable before the browser's WebSocket is accepted.
        """
        await self._shake_hands(headers)
        await send({"type": "websocket.accept", "subprotocol": self._protocol.subprotocol, "headers": []})
        halves = {asyncio.create_task(self._inwards(receive)), asyncio.create_task(self._outwards(send))}
        try:
            done, _ = await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                with contextlib.suppress(OSError):  # the browser left while a message was sent to it
                    each.result()
        finally:
            for each in halves:
                each.cancel()
            await asyncio.gather(*halves, return_exceptions=True)
        with contextlib.suppress(RuntimeError, OSError):
            await send({"type": "websocket.close", "code": self._close_code(), "reason": ""})

    async def _shake_hands(self, headers: Sequence[Header]) -> None:
        request = self._protocol.connect()
        for name, value in headers:
            if name not in _WRITTEN:
                request.headers[name.decode("latin-1")] = value.decode("latin-1")
        self._protocol.send_request(request)
        await self._flush()
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                while self._protocol.state is State.CONNECTING and self._protocol.handshake_exc is None:
                    data = await self._tunnel.receive()
                    if not data:
                        break
                    self._protocol.receive_data(data)
        except TimeoutError:
            raise BadGateway("service-too-slow", "The service did not open the WebSocket in time.") from None
        if self._protocol.state is not State.OPEN:
            raise BadGateway("service-bad-answer", "The service did not open the WebSocket.")

    async def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            for at in range(0, len(data), _PIECE):
                await self._tunnel.send(data[at : at + _PIECE])

    async def _inwards(self, receive: Receive) -> None:
        """Pass on the browser's messages until it leaves."""
        while True:
            message: Message = await receive()
            if message["type"] == "websocket.disconnect":
                with contextlib.suppress(InvalidState):
                    self._protocol.send_close(_GONE)
                    await self._flush()
                return
            try:
                if message.get("bytes") is not None:
                    self._protocol.send_binary(message["bytes"])
                else:
                    self._protocol.send_text((message.get("text") or "").encode())
            except InvalidState:
                return
            await self._flush()

    async def _outwards(self, send: Send) -> None:
        """Pass on the service's messages until it ends; some may have come with its handshake."""
        while True:
            for event in self._protocol.events_received():
                if isinstance(event, Frame) and not await self._take(event, send):
                    await self._flush()
                    return
            if self._protocol.state is not State.OPEN:
                return
            data = await self._tunnel.receive()
            if data:
                try:
                    self._memory.grow(len(data))
                except TooManyRequests:
                    self._ended_with = _TRY_AGAIN
                    self._protocol.fail(_TRY_AGAIN)
                    await self._flush()
                    return
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            await self._flush()

    async def _take(self, frame: Frame, send: Send) -> bool:
        """Add a frame to its message, and pass a whole message on; returns False where it must end here."""
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return True
        if frame.opcode is not Opcode.CONT:
            self._text = frame.opcode is Opcode.TEXT
        self._fragments.append(bytes(frame.data))
        if len(self._fragments) > _FRAGMENTS:
            self._protocol.fail(_TOO_BIG)
            return False
        if frame.fin:
            whole, self._fragments = b"".join(self._fragments), []
            if self._text:
                try:
                    await send({"type": "websocket.send", "text": whole.decode()})
                except UnicodeDecodeError:
                    self._protocol.fail(1007)
                    return False
            else:
                await send({"type": "websocket.send", "bytes": whole})
            self._memory.clear()
        return True

    def _close_code(self) -> int:
        """The code with which the service closed, where it may be sent on."""
        code = self._protocol.close_rcvd.code if self._protocol.close_rcvd is not None else None
        return (
            code
            if code is not None and (1000 <= code <= 1003 or 1007 <= code <= 1014 or code >= 3000)
            else self._ended_with
        )


def subprotocols_of(scope: Scope) -> list[str]:
    """The subprotocols that the browser offers."""
    return list(scope.get("subprotocols") or ())
