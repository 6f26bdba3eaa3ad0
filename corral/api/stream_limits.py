"""Bound the open streams (events, logs, commands, forwarded ports) per user and in all, before they begin."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from fastapi import Depends, Request
from starlette.requests import HTTPConnection
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from corral.api.authentication import Caller
from corral.api.client_addresses import address_key
from corral.api.connection_limits import closing_message
from corral.kernel.errors import TooManyRequests, Unavailable

Kind = Literal["events", "logs", "exec", "forward"]

_NAMES: Final[Mapping[Kind, str]] = {
    "events": "event streams",
    "logs": "logs",
    "exec": "commands in tasks",
    "forward": "forwarded connections",
}
_RETRY_SECONDS: Final = 10


class StreamCaps(NamedTuple):
    """The number of open streams of each kind that one user may have, and the number in all."""

    events: int = 100
    logs: int = 100
    exec: int = 50
    forward: int = 200
    in_all: int = 3000


class Streams:
    """Counts open streams."""

    def __init__(self, caps: StreamCaps) -> None:
        self._caps = caps
        self._count: Counter[tuple[Kind, str]] = Counter()
        self.in_all = 0

    @contextlib.contextmanager
    def open(self, kind: Kind, user: str) -> Iterator[None]:
        """Count one more open stream for the duration of the block.

        Raises TooManyRequests when the user has too many of this kind, Unavailable when the server has too many in all.
        """
        most: int = getattr(self._caps, kind)
        if self._count[kind, user] >= most:
            message = f"You have {most} {_NAMES[kind]} open, which is the most; close one of them."
            raise TooManyRequests("too-many-streams", message, retryAfter=_RETRY_SECONDS)
        if self.in_all >= self._caps.in_all:
            message = "Too many streams are open at this server; try again in a moment."
            raise Unavailable("too-many-streams", message, retry_after=_RETRY_SECONDS)
        self._count[kind, user] += 1
        self.in_all += 1
        try:
            yield
        finally:
            self.in_all -= 1
            self._count[kind, user] -= 1
            if self._count[kind, user] <= 0:
                del self._count[kind, user]


class EndingResponse(StreamingResponse):
    """A streaming response that ends with `cut` when its client reads too slowly."""

    def __init__(self, pieces: AsyncIterator[bytes], *, cut: bytes, **terms: Any) -> None:
        super().__init__(pieces, **terms)
        self._cut = cut

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        with closing_message(scope, self._cut):
            await super().__call__(scope, receive, send)


def streams_of(connection: HTTPConnection) -> Streams:
    """Return the stream counts of this application."""
    streams: Streams = connection.app.state.streams
    return streams


async def _events(request: Request, actor: Caller) -> AsyncIterator[None]:
    """Count an event stream of the caller until the response is sent."""
    with streams_of(request).open("events", actor.user):
        yield


async def _logs(request: Request, actor: Caller) -> AsyncIterator[None]:
    """Count a log of the caller until the response is sent."""
    with streams_of(request).open("logs", actor.user):
        yield


async def _signed_logs(request: Request) -> AsyncIterator[None]:
    """Count a log read by a signed URL under its client's address, until the response is sent."""
    with streams_of(request).open("logs", address_key(request)):
        yield


HoldsEvents: Final = Depends(_events)
HoldsLogs: Final = Depends(_logs)
HoldsSignedLogs: Final = Depends(_signed_logs)
