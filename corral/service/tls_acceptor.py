"""Accept TLS connections with a limit on handshakes under way, which uvicorn lacks.

A connection is counted from its acceptance on. Its address is checked before the event loop gets it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

_AT_ONCE: Final = 100
"""Most connections accepted in a row before the event loop serves others."""
_PAUSE_SECONDS: Final = 1.0
"""Seconds without accepting after accept failed, for example because no file descriptor was free."""
_MOST: Final = 256
_MOST_OF_ADDRESS: Final = 64
_log = logging.getLogger(__name__)


class Admission(Protocol):
    """An admitted connection."""

    def leave(self) -> None:
        """Release its place."""
        ...


Enter = Callable[[str], Admission | None]
"""Admits a connection from an address; None refuses it."""
HandOn = Callable[[asyncio.Protocol, Admission], None]
"""Called when the handshake is over; from then on the connection's protocol must release the place."""


class HandshakeLimit:
    """Limits handshakes under way, in all and per address; established connections are not counted."""

    def __init__(self, most: int = _MOST, most_of_address: int = _MOST_OF_ADDRESS) -> None:
        self.count = 0
        self._most, self._most_of_address = most, most_of_address
        self._addresses: Counter[str] = Counter()

    def enter(self, host: str) -> Admission | None:
        """Take a place for a handshake with `host`; None when there are too many."""
        if self.count >= self._most or self._addresses[host] >= self._most_of_address:
            return None
        self.count += 1
        self._addresses[host] += 1
        return _Passage(self, host)

    @staticmethod
    def hand_on(_: asyncio.Protocol, admission: Admission) -> None:
        """Release the place of a finished handshake."""
        admission.leave()

    def forget(self, host: str) -> None:
        """Count one handshake with `host` less."""
        self.count -= 1
        self._addresses[host] -= 1
        if not self._addresses[host]:
            del self._addresses[host]


class _Passage:
    def __init__(self, limit: HandshakeLimit, host: str) -> None:
        self._limit, self._host = limit, host

    def leave(self) -> None:
        self._limit.forget(self._host)


class AcceptorSettings(NamedTuple):
    """The settings of an acceptor: TLS, protocol, admission, timeout and backlog."""

    context: ssl.SSLContext
    protocol: Callable[[], asyncio.Protocol]
    enter: Enter
    hand_on: HandOn
    seconds: float = 20.0
    """Most seconds that a handshake may take."""
    backlog: int = 2048


def acceptor_settings(server: Any, enter: Enter, hand_on: HandOn, seconds: float = 20.0) -> AcceptorSettings:
    """The settings of a uvicorn server that has TLS and was started without sockets."""
    config = server.config

    def protocol() -> asyncio.Protocol:
        made: asyncio.Protocol = config.http_protocol_class(
            config=config, server_state=server.server_state, app_state=server.lifespan.state
        )
        return made

    return AcceptorSettings(config.ssl, protocol, enter, hand_on, seconds, config.backlog)


class Acceptor:
    """Accepts the connections of one listening socket; uvicorn uses it like an asyncio server."""

    def __init__(self, listener: socket.socket, settings: AcceptorSettings) -> None:
        self._listener, self._settings = listener, settings
        self._loop = asyncio.get_running_loop()
        self._under_way: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        listener.listen(settings.backlog)
        self._begin()

    def close(self) -> None:
        """Stop accepting, and cancel the handshakes under way."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener.fileno())
        for task in self._under_way:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until the cancelled handshakes have ended."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _begin(self) -> None:
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.warning("No connection can be accepted for a moment: %s", error.strerror)
                self._loop.remove_reader(self._listener.fileno())
                self._pause = self._loop.call_later(_PAUSE_SECONDS, self._begin)
                return
            admission = self._settings.enter(address[0])
            if admission is None:
                connection.close()
                continue
            task = self._loop.create_task(self._shake(connection, admission))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _shake(self, connection: socket.socket, admission: Admission) -> None:
        """Complete the handshake of a connection."""
        settings, handed_on = self._settings, False

        def protocol() -> asyncio.Protocol:
            made = settings.protocol()
            begin = made.connection_made

            def connection_made(transport: asyncio.BaseTransport) -> None:
                nonlocal handed_on
                handed_on = True
                settings.hand_on(made, admission)
                begin(transport)

            made.connection_made = connection_made  # type: ignore[method-assign]
            return made

        try:
            connection.setblocking(False)
            await self._loop.connect_accepted_socket(
                protocol, connection, ssl=settings.context, ssl_handshake_timeout=settings.seconds
            )
        except (OSError, ssl.SSLError):
            return  # no TLS, a timeout, or a client that left: there is nobody to report it to
        finally:
            if not handed_on:
                admission.leave()
                connection.close()
