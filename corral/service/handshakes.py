"""TLS connections count from their first moment on: uvicorn alone lets any number of handshakes be under way.

Connections are accepted here, looked at by the address that they come from, and only then given to the event loop.
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
"""So many are accepted before others have their turn."""
_PAUSE_SECONDS: Final = 1.0
"""Where no file can be opened for a connection, the next one is accepted after so long."""
_MOST: Final = 256
_MOST_OF_ADDRESS: Final = 64
_log = logging.getLogger(__name__)


class Entered(Protocol):
    """One connection that was let in."""

    def leave(self) -> None:
        """It has ended."""
        ...


Enter = Callable[[str], Entered | None]
"""Lets a connection from an address in, or not."""
HandOn = Callable[[asyncio.Protocol, Entered], None]
"""The handshake is over: from now on the connection's protocol has to tell of its end."""


class Gate:
    """Counts handshakes under way, where those who have come through need no bound."""

    def __init__(self, most: int = _MOST, most_of_address: int = _MOST_OF_ADDRESS) -> None:
        self.count = 0
        self._most, self._most_of_address = most, most_of_address
        self._addresses: Counter[str] = Counter()

    def enter(self, host: str) -> Entered | None:
        """A place for a handshake with `host`, None when there are too many."""
        if self.count >= self._most or self._addresses[host] >= self._most_of_address:
            return None
        self.count += 1
        self._addresses[host] += 1
        return _Passage(self, host)

    @staticmethod
    def hand_on(_: asyncio.Protocol, passage: Entered) -> None:
        """One handshake is over."""
        passage.leave()

    def forget(self, host: str) -> None:
        """One handshake fewer with `host`."""
        self.count -= 1
        self._addresses[host] -= 1
        if not self._addresses[host]:
            del self._addresses[host]


class _Passage:
    def __init__(self, gate: Gate, host: str) -> None:
        self._gate, self._host = gate, host

    def leave(self) -> None:
        self._gate.forget(self._host)


class Terms(NamedTuple):
    """How connections are let in, and what those get that were."""

    context: ssl.SSLContext
    protocol: Callable[[], asyncio.Protocol]
    enter: Enter
    hand_on: HandOn
    seconds: float = 20.0
    """So long may a handshake take."""
    backlog: int = 2048


def uvicorns_terms(server: Any, enter: Enter, hand_on: HandOn, seconds: float = 20.0) -> Terms:
    """The terms of one of uvicorn's servers that has TLS and has started without sockets."""
    config = server.config

    def protocol() -> asyncio.Protocol:
        made: asyncio.Protocol = config.http_protocol_class(
            config=config, server_state=server.server_state, app_state=server.lifespan.state
        )
        return made

    return Terms(config.ssl, protocol, enter, hand_on, seconds, config.backlog)


class Acceptor:
    """Accepts the connections of one listening socket; to uvicorn it looks like one of asyncio's servers."""

    def __init__(self, listener: socket.socket, terms: Terms) -> None:
        self._listener, self._terms = listener, terms
        self._loop = asyncio.get_running_loop()
        self._under_way: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        listener.listen(terms.backlog)
        self._begin()

    def close(self) -> None:
        """Accept no more, and break off the handshakes that are under way."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener.fileno())
        for task in self._under_way:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until the last of them is broken off."""
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
            entered = self._terms.enter(address[0])
            if entered is None:
                connection.close()
                continue
            task = self._loop.create_task(self._shake(connection, entered))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _shake(self, connection: socket.socket, entered: Entered) -> None:
        """Take the connection to the end of its handshake."""
        terms, handed_on = self._terms, False

        def protocol() -> asyncio.Protocol:
            made = terms.protocol()
            begin = made.connection_made

            def connection_made(transport: asyncio.BaseTransport) -> None:
                nonlocal handed_on
                handed_on = True
                terms.hand_on(made, entered)
                begin(transport)

            made.connection_made = connection_made  # type: ignore[method-assign]
            return made

        try:
            connection.setblocking(False)
            await self._loop.connect_accepted_socket(
                protocol, connection, ssl=terms.context, ssl_handshake_timeout=terms.seconds
            )
        except (OSError, ssl.SSLError):
            return  # it was no TLS, took too long, or the client left: there is nobody to tell
        finally:
            if not handed_on:
                entered.leave()
                connection.close()
