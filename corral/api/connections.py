"""The bounds of the HTTP door, and how many connections there are: in all, and of strangers at each address."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

from starlette.requests import HTTPConnection
from starlette.types import Scope

from corral.api.addresses import Network, counted_as

_STATE: Final = "connection"
_LOG_SECONDS: Final = 60.0
_log = logging.getLogger("corral.api")


class DoorBounds(NamedTuple):
    """What one connection may send before anybody is asked who it is, and how many connections there may be."""

    connections: int = 4096
    strangers_per_address: int = 256
    """Connections of one address on which nobody has signed in; 0 is no limit."""
    header_bytes: int = 64 * 1024
    """Of a request's line and headers, and of everything between two pieces of its body: trailers, chunk extensions."""
    headers: int = 128
    url_bytes: int = 16 * 1024
    header_seconds: float = 20.0
    """From the connection, or from a request's first byte, to the end of its headers."""
    idle_seconds: float = 20.0
    body_seconds: float = 30.0
    body_bytes: int = 8 * 1024
    """What a body must bring in each `body_seconds`, as long as the server waits for it."""
    pipelined: int = 64
    closing_seconds: float = 10.0
    """How long a client may take to read its last answer before the connection is cut."""
    reading_seconds: float = 60.0
    reading_bytes: int = 8 * 1024
    """What a client must take in each `reading_seconds`, as long as the server has more for it than the system buffers."""


class Place:
    """One connection's place among all; `state` hands it to the application."""

    def __init__(self, door: Door, address: str) -> None:
        self._door = door
        self._address = address
        """What the connection counts under; "" once somebody has signed in on it, or where addresses do not count."""
        self.last_words = b""
        """What the response under way ends with when its reader is too slow."""

    def state(self) -> dict[str, Place]:
        """What the application finds in the scope's state."""
        return {_STATE: self}

    def known(self) -> None:
        """Somebody has signed in: it is no stranger's connection any more."""
        self._door.forget_stranger(self._address)
        self._address = ""

    def leave(self) -> None:
        """The connection has ended."""
        self.known()
        self._door.count -= 1


class Pace:
    """How fast a client takes what is sent."""

    def __init__(self, bounds: DoorBounds) -> None:
        self._bounds = bounds
        self._since = 0.0
        self._left = 0
        """Bytes that were unsent at `_since`."""

    def is_too_slow(self, paused: bool, left: int, now: float) -> bool:
        """Whether the client has taken too little; `left` bytes are unsent, and so many that sending has `paused`."""
        if not paused:
            self._since = 0.0
            return False
        if self._since and now - self._since <= self._bounds.reading_seconds:
            return False
        slow = bool(self._since) and self._left - left < self._bounds.reading_bytes
        self._since, self._left = now, left
        return slow


class Door:
    """Counts connections, and turns away those that are too many."""

    def __init__(self, bounds: DoorBounds, proxies: Sequence[Network] = ()) -> None:
        self.bounds = bounds
        self.count = 0
        self._proxies = proxies
        self._strangers: Counter[str] = Counter()
        self._turned_away = 0
        self._told_at = 0.0

    def enter(self, host: str) -> Place | tuple[int, str, str]:
        """A place for a new connection from `host`; or the status, code and message that it is refused with."""
        if self.count >= self.bounds.connections:
            self._turned_away += 1
            return 503, "too-many-connections", "The server has too many connections; try again in a moment."
        address = "" if not self.bounds.strangers_per_address or self._is_proxy(host) else counted_as(host)
        if address and self._strangers[address] >= self.bounds.strangers_per_address:
            self._turned_away += 1
            return 429, "too-many-connections", "Too many connections of this address wait for a sign-in."
        self.count += 1
        if address:
            self._strangers[address] += 1
        return Place(self, address)

    def forget_stranger(self, address: str) -> None:
        """One connection fewer counts under `address`."""
        if address:
            self._strangers[address] -= 1
            if self._strangers[address] <= 0:
                del self._strangers[address]

    def tell(self, now: float) -> None:
        """Log how many were turned away, at most once a minute."""
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
def last_words(scope: Scope, words: bytes) -> Iterator[None]:
    """Have a reader who is too slow get these bytes at the end of what is sent inside."""
    place = scope.get("state", {}).get(_STATE)
    if not isinstance(place, Place):
        yield
        return
    place.last_words = words
    try:
        yield
    finally:
        place.last_words = b""


def signed_in(connection: HTTPConnection) -> None:
    """Somebody has proved who calls on this connection."""
    place = connection.scope.get("state", {}).get(_STATE)
    if isinstance(place, Place):
        place.known()
