"""One HTTP request of a browser, passed on to a service of a job by HTTP/1.1 over a byte stream.

Bodies stream both ways: neither side is read faster than the other one takes. The headers of the service are bounded
in size, number and time. What it says beyond HTTP ends the exchange.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import h11
from starlette.types import Receive, Scope, Send

from corral.api.services.headers import Header, Place, from_service
from corral.api.services.tunnel import Tunnel
from corral.kernel.errors import CorralError, InvalidInput

_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that no header may have."""
_NO_BODY: Final = frozenset({204, 304})


class ExchangeLimits(NamedTuple):
    """Bounds on what a service sends before its body."""

    header_bytes: int = 64 * 1024
    headers: int = 128
    header_seconds: float = 120.0
    """Seconds from the last byte of the request to the end of the response's headers."""


LIMITS: Final = ExchangeLimits()


class BadGateway(CorralError):
    """The service does not speak HTTP as a server must."""

    status = 502


class HttpExchange:
    """The exchange of one request and its response."""

    def __init__(self, tunnel: Tunnel, place: Place, limits: ExchangeLimits = LIMITS) -> None:
        self._tunnel = tunnel
        self._place = place
        self._limits = limits
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=limits.header_bytes)
        self._deadline = asyncio.timeout(None)

    async def pass_on(
        self, scope: Scope, target: bytes, headers: Sequence[Header], receive: Receive, send: Send
    ) -> None:
        """Pass the request and its response on; returns early when the browser leaves.

        Raises BadGateway or Unavailable before a response has begun. A response that breaks later is left incomplete.
        """
        try:
            request = h11.Request(method=scope["method"], target=target, headers=[*headers, *_framing(scope)])
        except h11.LocalProtocolError:
            raise InvalidInput("bad-request", "The request has characters that HTTP does not allow.") from None
        await self._write(request)
        sending = asyncio.create_task(self._send_body(receive))
        answering = asyncio.create_task(self._answer(scope["method"], send))
        try:
            await asyncio.wait({sending, answering}, return_when=asyncio.FIRST_COMPLETED)
            for each in (answering, sending):
                if each.done():
                    each.result()
        finally:
            for each in (sending, answering):
                each.cancel()
            await asyncio.gather(sending, answering, return_exceptions=True)

    async def _send_body(self, receive: Receive) -> None:
        """Pass on the request's body, then wait until the browser leaves."""
        more = True
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            if not more:
                continue
            if body := message.get("body", b""):
                await self._write(h11.Data(body))
            if not (more := message.get("more_body", False)):
                await self._write(h11.EndOfMessage())

    async def _write(self, event: h11.Request | h11.Data | h11.EndOfMessage) -> None:
        if self._http.our_state is not h11.ERROR:
            await self._tunnel.send(self._http.send(event) or b"")
        if self._deadline.when() is not None and not self._deadline.expired():
            self._deadline.reschedule(self._until())

    def _until(self) -> float:
        return asyncio.get_running_loop().time() + self._limits.header_seconds

    async def _answer(self, method: str, send: Send) -> None:
        response = await self._response()
        headers = from_service(response.headers, self._place)
        framed = dict(response.headers)
        if b"transfer-encoding" not in framed and b"content-length" in framed and response.status_code not in _NO_BODY:
            headers.append((b"content-length", framed[b"content-length"]))
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        while True:
            try:
                event = await self._next()
            except (h11.RemoteProtocolError, CorralError):
                return  # the response is left incomplete, so that the browser does not take it for whole
            if isinstance(event, h11.Data):
                await send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
            elif isinstance(event, h11.EndOfMessage):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            else:
                return

    async def _response(self) -> h11.Response:
        try:
            async with self._deadline:
                self._deadline.reschedule(self._until())
                while isinstance(event := await self._next(), h11.InformationalResponse):
                    pass
        except TimeoutError:
            seconds = f"{self._limits.header_seconds:g}"
            raise BadGateway(
                "service-too-slow", f"The service sent no whole headers within {seconds} seconds."
            ) from None
        except h11.RemoteProtocolError:
            raise _nonsense() from None
        if not isinstance(event, h11.Response) or not 200 <= event.status_code <= 599:
            raise _nonsense()
        if len(event.headers) > self._limits.headers or any(_CONTROL.search(value) for _, value in event.headers):
            raise _nonsense()
        return event

    async def _next(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            self._http.receive_data(await self._tunnel.receive())


def _framing(scope: Scope) -> list[Header]:
    """The headers that frame the request's body; the stream carries one request."""
    framed = dict(scope["headers"])
    close = (b"connection", b"close")
    if b"transfer-encoding" in framed:
        return [close, (b"transfer-encoding", b"chunked")]
    return [close, (b"content-length", framed[b"content-length"])] if b"content-length" in framed else [close]


def _nonsense() -> BadGateway:
    return BadGateway("service-bad-answer", "The service did not answer in HTTP/1.1 within Corral's bounds of headers.")
