"""Bounds of HTTP connections, and counts of open ones: in all, per caller, and unauthenticated per address."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

from starlette.requests import HTTPConnection
from starlette.types import Scope

from corral.api.client_addresses import Network, counted_as
from corral.kernel.errors import TooManyRequests
from corral.service.actor import Actor
from corral.workers.pool import CALLER

_STATE: Final = "connection"
TOO_MANY: Final = "too-many-connections"
"""The code of a refusal after which the connection is closed."""
_LOG_SECONDS: Final = 60.0
WAIT_SECONDS: Final = 2.0
"""Seconds that a connection beyond its user's limit waits for the refusal. It counts as unauthenticated meanwhile, so
that in a flood of them most are turned away before any of their data is read."""
_log = logging.getLogger("corral.api")


class ConnectionLimits(NamedTuple):
    """Bounds on the connections, and on the data that one connection may send before its caller is authenticated."""

    connections: int = 4096
    strangers_per_address: int = 256
    """Unauthenticated connections of one address; 0 is no limit."""
    connections_per_user: int = 1024
    """Connections whose latest call was by one user, or by the tasks of one job; 0 is no limit."""
    header_bytes: int = 64 * 1024
    """Bytes of a request line with its headers, and of everything between two pieces of a body: trailers, chunk
    extensions."""
    headers: int = 128
    url_bytes: int = 16 * 1024
    header_seconds: float = 20.0
    """Seconds from the connection, or from a request's first byte, to the end of the headers."""
    idle_seconds: float = 20.0
    body_seconds: float = 30.0
    body_bytes: int = 8 * 1024
    """Bytes that a body must bring in each `body_seconds` while the server waits for it."""
    pipelined: int = 64
    closing_seconds: float = 10.0
    """Seconds that a client may take to read its last answer before the connection is cut."""
    reading_seconds: float = 60.0
    reading_bytes: int = 8 * 1024
    """Bytes that a client must take in each `reading_seconds` while more is to be sent than the system buffers."""


class Place:
    """One counted connection; `state` makes it known to the application."""

    def __init__(self, counter: ConnectionCounter, address: str, *, shared: bool) -> None:
        self._counter = counter
        self._address = address
        """The address that the connection counts under; "" after a sign-in on it, or where addresses do not count."""
        self._shared = shared
        """Whether a trusted proxy sends calls of many users over it."""
        self._caller = ""
        self._left = False
        self.closing_message = b""
        """The bytes that end the response under way when its reader is too slow."""

    def state(self) -> dict[str, Place]:
        """Return the entry that the application finds in the scope's state."""
        return {_STATE: self}

    def known(self, caller: str) -> None:
        """Count the connection under an authenticated caller, and no longer as unauthenticated.

        Raises TooManyRequests when the caller has too many; then the connection counts as before.
        """
        if self._left:
            return  # the connection ended while its call was being authenticated
        if caller != self._caller and not self._shared:
            self._counter.admit(caller)
            self._counter.dismiss(self._caller)
            self._caller = caller
        self._forget_stranger()

    def leave(self) -> None:
        """Stop counting the connection, which has ended."""
        self._left = True
        self._forget_stranger()
        self._counter.dismiss(self._caller)
        self._counter.count -= 1

    def _forget_stranger(self) -> None:
        self._counter.forget_stranger(self._address)
        self._address = ""


class ReadSpeed:
    """How fast a client reads the data sent to it."""

    def __init__(self, bounds: ConnectionLimits) -> None:
        self._bounds = bounds
        self._since = 0.0
        self._left = 0
        """Bytes that were unsent at `_since`."""

    def is_too_slow(self, paused: bool, left: int, now: float) -> bool:
        """Return whether the client reads too slowly; `left` bytes are unsent, and `paused` says that sending waits."""
        if not paused:
            self._since = 0.0
            return False
        if self._since and now - self._since <= self._bounds.reading_seconds:
            return False
        slow = bool(self._since) and self._left - left < self._bounds.reading_bytes
        self._since, self._left = now, left
        return slow


class ConnectionCounter:
    """Counts connections, and refuses those beyond the bounds."""

    def __init__(self, bounds: ConnectionLimits, proxies: Sequence[Network] = ()) -> None:
        self.bounds = bounds
        self.count = 0
        self._proxies = proxies
        self._strangers: Counter[str] = Counter()
        self._callers: Counter[str] = Counter()
        self._turned_away = 0
        self._told_at = 0.0

    def enter(self, host: str) -> Place | tuple[int, str, str]:
        """Return a place for a new connection from `host`, or the status, code and message of its refusal."""
        if self.count >= self.bounds.connections:
            self._turned_away += 1
            return 503, TOO_MANY, "The server has too many connections; try again in a moment."
        shared = self._is_proxy(host)
        address = "" if not self.bounds.strangers_per_address or shared else counted_as(host)
        if address and self._strangers[address] >= self.bounds.strangers_per_address:
            self._turned_away += 1
            return 429, TOO_MANY, "Too many connections of this address wait for a sign-in."
        self.count += 1
        if address:
            self._strangers[address] += 1
        return Place(self, address, shared=shared)

    def let_in(self, host: str) -> Place | None:
        """Return a place for a connection whose handshake has not begun; None where it is refused."""
        entered = self.enter(host)
        return entered if isinstance(entered, Place) else None

    def admit(self, caller: str) -> None:
        """Count one more connection of this caller.

        Raises TooManyRequests when the caller has too many.
        """
        if 0 < self.bounds.connections_per_user <= self._callers[caller]:
            self._turned_away += 1
            message = f"You have {self._callers[caller]:,} connections, the most allowed; close or reuse some."
            raise TooManyRequests(TOO_MANY, message, retryAfter=1)
        self._callers[caller] += 1

    def dismiss(self, caller: str) -> None:
        """Count one fewer connection of this caller."""
        if caller:
            self._callers[caller] -= 1
            if self._callers[caller] <= 0:
                del self._callers[caller]

    def forget_stranger(self, address: str) -> None:
        """Count one fewer unauthenticated connection of `address`."""
        if address:
            self._strangers[address] -= 1
            if self._strangers[address] <= 0:
                del self._strangers[address]

    def tell(self, now: float) -> None:
        """Log the number of refused connections, at most once a minute."""
        if self._turned_away and now - self._told_at >= _LOG_SECONDS:
            _log.warning("%d connections were turned away: %d are open", self._turned_away, self.count)
            self._turned_away, self._told_at = 0, now

    def _is_proxy(self, host: str) -> bool:
        if not self._proxies:
            return False
        try:
            address = ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._proxies)


@contextlib.contextmanager
def closing_message(scope: Scope, message: bytes) -> Iterator[None]:
    """Within the block, end the response with `message` if its reader is too slow."""
    place = scope.get("state", {}).get(_STATE)
    if not isinstance(place, Place):
        yield
        return
    place.closing_message = message
    try:
        yield
    finally:
        place.closing_message = b""


def known(scope: Scope, caller: str) -> None:
    """Count a connection under a caller who is no user.

    Raises TooManyRequests when the caller has too many.
    """
    CALLER.set(caller)
    place = scope.get("state", {}).get(_STATE)
    if isinstance(place, Place):
        place.known(caller)


async def signed_in(connection: HTTPConnection, actor: Actor) -> None:
    """Count the connection under an actor who has authenticated on it.

    Raises TooManyRequests, `WAIT_SECONDS` later, when the actor has too many.
    """
    CALLER.set(f"job {actor.job}" if actor.kind == "job" else f"user {actor.user}")
    place = connection.scope.get("state", {}).get(_STATE)
    if isinstance(place, Place):
        try:
            place.known(CALLER.get())
        except TooManyRequests:
            await asyncio.sleep(WAIT_SECONDS)
            raise
