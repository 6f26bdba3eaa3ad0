"""One HTTP request of a browser, passed on to a service of a job by HTTP/1.1 over a byte stream.

Bodies stream both ways: neither side is read faster than the other one takes. The headers of the service are bounded
in size, number and time. What it says beyond HTTP ends the exchange. A stream on which both sides have said all, and
neither wants it closed, can carry another exchange.

A request without a body is answered in the caller's own task: who watches whether the browser leaves begins only where the
answer is not there at once. What both sides say then is mostly plain (`plain_messages`), and else h11's.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import h11
from starlette.types import Receive, Scope, Send

from corral.api.services.headers import Header, Place, from_service
from corral.api.services.plain_messages import PlainAnswer, plain_answer, plain_request
from corral.api.services.tunnel import Tunnel
from corral.kernel.errors import CorralError, InvalidInput

_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that no header may have."""
_NO_BODY: Final = frozenset({204, 304})
_AT_ONCE_SECONDS: Final = 0.05
"""Seconds within which most small answers come."""


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


class StaleStream(Exception):
    """The service had closed a kept stream before it answered anything; the request can be made on another one."""


class _Watch:
    """Cuts a stream once the browser has left, or no answer has begun in time, while one waits for the answer."""

    def __init__(self, tunnel: Tunnel, receive: Receive, seconds: float) -> None:
        self._tunnel, self._receive, self._seconds = tunnel, receive, seconds
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(min(_AT_ONCE_SECONDS, seconds), self._begin)
        self._task: asyncio.Task[None] | None = None
        self._is_answered = False
        self.has_left = False
        self.is_late = False

    def answered(self) -> None:
        """The answer has begun: from now on only the browser is watched."""
        self._is_answered = True
        if self._task is not None:
            self._timer.cancel()

    def end(self) -> None:
        """Watch no more."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._until_left())
        if not self._is_answered:
            self._timer = self._loop.call_later(max(0.0, self._seconds - _AT_ONCE_SECONDS), self._end_wait)

    async def _until_left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.has_left = True
        self._tunnel.cut()

    def _end_wait(self) -> None:
        self.is_late = True
        self._tunnel.cut()


class HttpExchange:
    """The exchange of one request and its response; `kept` says that the stream has carried others before."""

    def __init__(self, tunnel: Tunnel, place: Place, limits: ExchangeLimits = LIMITS, *, kept: bool = False) -> None:
        self._tunnel = tunnel
        self._place = place
        self._limits = limits
        self._is_unanswered = kept
        self._is_plain = False
        """Whether all was said by plain messages."""
        self._has_left = False
        self._deadline = asyncio.timeout(None)
        self._sent_at = 0.0
        """Loop time at which the request's last byte was sent."""

    async def pass_on(
        self, scope: Scope, target: bytes, headers: Sequence[Header], receive: Receive, send: Send
    ) -> None:
        """Pass the request and its response on; returns early when the browser leaves.

        Raises BadGateway, Unavailable or StaleStream before a response has begun. A response that breaks later is left
        incomplete.
        """
        if is_with_body(scope["headers"]):
            await self._pass_both(scope, target, headers, receive, send)
        else:
            await self._pass_answer(scope["method"], target, headers, receive, send)

    async def _pass_answer(
        self, method: str, target: bytes, headers: Sequence[Header], receive: Receive, send: Send
    ) -> None:
        """Make the exchange of a request without a body."""
        plain = plain_request(method, target, headers)
        request = plain or self._of_h11(method, target, headers)
        await self._tunnel.send(request)
        self._sent_at = asyncio.get_running_loop().time()
        watch = _Watch(self._tunnel, receive, self._limits.header_seconds)
        try:
            data = await self._received()
            watch.answered()
            bounds = self._limits
            answer = plain_answer(data, bounds.header_bytes, bounds.headers) if plain and method != "HEAD" else None
            if answer is not None:
                await self._send_plain(answer, send)
                return
            if plain:
                self._of_h11(method, target, headers)
            self._http.receive_data(data)
            await self._answer(method, send)
        except (StaleStream, CorralError):
            if watch.has_left:
                self._has_left = True
                return
            if watch.is_late:
                raise self._too_slow() from None
            raise
        finally:
            watch.end()

    async def _send_plain(self, answer: PlainAnswer, send: Send) -> None:
        headers = from_service(answer.headers, self._place)
        headers.append((b"content-length", b"%d" % len(answer.body)))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body, "more_body": False})
        self._is_plain = True

    def _of_h11(self, method: str, target: bytes, headers: Sequence[Header]) -> bytes:
        """The bytes of a request without a body, from which on h11 follows the exchange.

        Raises InvalidInput.
        """
        return self._begun(method, target, headers) + (self._http.send(h11.EndOfMessage()) or b"")

    def _begun(self, method: str, target: bytes, headers: Sequence[Header]) -> bytes:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=self._limits.header_bytes)
        try:
            return self._http.send(h11.Request(method=method, target=target, headers=list(headers))) or b""
        except h11.LocalProtocolError:
            raise InvalidInput("bad-request", "The request has characters that HTTP does not allow.") from None

    async def _pass_both(
        self, scope: Scope, target: bytes, headers: Sequence[Header], receive: Receive, send: Send
    ) -> None:
        """Make the exchange of a request with a body, which streams beside the answer."""
        await self._tunnel.send(self._begun(scope["method"], target, [*headers, *_framing(scope)]))
        self._sent_at = asyncio.get_running_loop().time()
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

    @property
    def is_reusable(self) -> bool:
        """Whether all is said, and the stream can carry another exchange."""
        if self._is_plain or self._has_left:
            return self._is_plain
        http = self._http
        return http.our_state is h11.DONE and http.their_state is h11.DONE and http.trailing_data == (b"", False)

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

    async def _write(self, event: h11.Data | h11.EndOfMessage) -> None:
        if self._http.our_state is not h11.ERROR:
            await self._tunnel.send(self._http.send(event) or b"")
        self._sent_at = asyncio.get_running_loop().time()
        if self._deadline.when() is not None and not self._deadline.expired():
            self._deadline.reschedule(self._until())

    def _until(self) -> float:
        return self._sent_at + self._limits.header_seconds

    async def _answer(self, method: str, send: Send) -> None:
        response = await self._response()
        headers = from_service(response.headers, self._place)
        framed = dict(response.headers)
        if b"transfer-encoding" not in framed and b"content-length" in framed and response.status_code not in _NO_BODY:
            headers.append((b"content-length", framed[b"content-length"]))
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        try:
            event = await self._next()
            while isinstance(event, h11.Data):
                data = event.data
                if isinstance(event := self._http.next_event(), h11.EndOfMessage):
                    await send({"type": "http.response.body", "body": data, "more_body": False})
                    return
                await send({"type": "http.response.body", "body": data, "more_body": True})
                if event is h11.NEED_DATA:
                    event = await self._next()
        except (h11.RemoteProtocolError, CorralError):
            return  # the response is left incomplete, so that the browser does not take it for whole
        if isinstance(event, h11.EndOfMessage):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _response(self) -> h11.Response:
        try:
            async with self._deadline:
                self._deadline.reschedule(self._until())
                while isinstance(event := await self._next(), h11.InformationalResponse):
                    pass
        except TimeoutError:
            raise self._too_slow() from None
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
            self._http.receive_data(await self._received())

    async def _received(self) -> bytes:
        data = await self._tunnel.receive()
        if self._is_unanswered and not data:
            raise StaleStream
        self._is_unanswered = False
        return data

    def _too_slow(self) -> BadGateway:
        seconds = f"{self._limits.header_seconds:g}"
        return BadGateway("service-too-slow", f"The service sent no whole headers within {seconds} seconds.")


def is_with_body(headers: Iterable[Header]) -> bool:
    """Whether a request has a body, which may be empty."""
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in headers)


def _framing(scope: Scope) -> list[Header]:
    """The headers that frame the request's body."""
    framed = dict(scope["headers"])
    if b"transfer-encoding" in framed:
        return [(b"transfer-encoding", b"chunked")]
    return [(b"content-length", framed[b"content-length"])] if b"content-length" in framed else []


def _nonsense() -> BadGateway:
    return BadGateway("service-bad-answer", "The service did not answer in HTTP/1.1 within Corral's bounds of headers.")
