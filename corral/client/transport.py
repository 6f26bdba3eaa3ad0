"""The sync client's HTTP transport over `http.client`, which imports in a third of httpx2's time.

See docs/decisions/0002-sync-client-transport.md for the measurement. One connection is kept and reused for a while.
A request that failed before any answer on an idle connection is retried once on a new one, if it is repeatable or the
server cannot have the whole of it. A refusal that passes by itself is waited for (`corral.client.patience`).
"""

from __future__ import annotations

import http.client
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from corral.client.calls import Call, raise_for
from corral.client.patience import KEPT_SECONDS, PATIENCE, pause_before_retry, repeatable
from corral.kernel.errors import InvalidInput, Unavailable

PIECE = 256 * 1024


class Transport:
    """Sends calls to one server and reads their answers; not thread-safe."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        ca: str = "",
        timeout: float = 30.0,
        patience: float = PATIENCE,
        waiting: Callable[[Unavailable], None] = lambda refused: None,
    ) -> None:
        self.url = checked_url(url)
        parts = urlsplit(self.url)
        self._base = parts.path.rstrip("/")
        self._https = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port
        self._token = token
        self._ca = ca
        self._timeout = timeout
        self._patience = patience
        self._waiting = waiting
        self._kept: http.client.HTTPConnection | None = None
        self._kept_since = 0.0

    def send(self, call: Call[Any]) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Return the status, headers and body of the answer to `call`.

        Raises the error that the server answered with, Unavailable when the server is unreachable.
        """
        until = time.monotonic() + self._patience
        while True:
            try:
                return self._send(call)
            except Unavailable as refused:
                pause = pause_before_retry(call, refused, until - time.monotonic())
                if pause is None:
                    raise
                self._waiting(refused)
            time.sleep(pause)

    def _send(self, call: Call[Any]) -> tuple[int, http.client.HTTPMessage, bytes]:
        kept = self._still_open()
        connection, used = kept or self._connect(), kept is not None
        self._kept = None
        sent = False
        try:
            self._request(connection, call)
            sent = True
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            if used and (not sent or repeatable(call)) and not isinstance(error, TimeoutError):
                return self._send(call)
            raise self._unreachable(error) from None
        if response.will_close:
            connection.close()
        else:
            self._kept, self._kept_since = connection, time.monotonic()
        raise_for(response.status, body, response.headers.get("retry-after", ""))
        return response.status, response.headers, body

    def _still_open(self) -> http.client.HTTPConnection | None:
        """Return the kept connection; None if the server has closed it, for example by a restart, or may do so now."""
        kept = self._kept
        if kept is None or kept.sock is None or kept.sock.fileno() < 0:
            return None
        if time.monotonic() - self._kept_since < KEPT_SECONDS:
            with selectors.DefaultSelector() as selector:
                selector.register(kept.sock, selectors.EVENT_READ)
                if not selector.select(0):
                    return kept
        kept.close()
        return None

    def stream(self, call: Call[Any], *, timeout: float | None = None) -> Iterator[bytes]:
        """Yield the answer's body as it arrives, on a connection of its own."""
        connection = self._connect()
        line = connection.sock
        try:
            self._request(connection, call)
            response = connection.getresponse()
            line.settimeout(timeout)  # only the first bytes must be prompt: a task may print nothing for days
            if response.status >= 400:
                raise_for(response.status, response.read(), response.headers.get("retry-after", ""))
            while piece := response.read1(PIECE):
                yield piece
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        finally:
            connection.close()

    def upload(self, call: Call[Any], pieces: Iterable[bytes]) -> bytes:
        """Send a long body in pieces, whose total length is in the call's headers; read an early refusal too."""
        connection = self._connect()
        try:
            connection.putrequest(call.method, self._base + call.path)
            for name, value in {**self._headers(), **call.headers}.items():
                connection.putheader(name, value)
            connection.endheaders()
            try:
                for piece in pieces:
                    connection.send(piece)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the server's answer gives the reason
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        finally:
            connection.close()
        raise_for(response.status, body)
        return body

    def close(self) -> None:
        """Close the connection."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _request(self, connection: http.client.HTTPConnection, call: Call[Any]) -> None:
        """Send a call; when this raises an OSError, its last bytes were not sent."""
        connection.request(call.method, self._base + call.path, call.body, {**self._headers(), **call.headers})

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "corral"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def _connect(self) -> http.client.HTTPConnection:
        if not self._https:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        else:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls())
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._ca:
            try:
                context.load_verify_locations(self._ca)
            except (OSError, ssl.SSLError):
                raise InvalidInput("unreadable-ca", f"{self._ca} has no certificates; name a PEM file.") from None
        return context

    def _unreachable(self, error: BaseException) -> Unavailable:
        return why_unreachable(self.url, error)


def checked_url(url: str) -> str:
    """Return a server's URL without a slash at its end.

    Raises InvalidInput when it is not a URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput("invalid-url", f"{url!r} is not a server's address; it reads like http://127.0.0.1:8470.")
    return url.rstrip("/")


def why_unreachable(url: str, error: BaseException) -> Unavailable:
    """Return the error to raise when a server did not answer because of `error`."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = f"its certificate is not trusted ({error.verify_message}); name its authority with CORRAL_CA"
    elif isinstance(error, TimeoutError):
        reason = "it does not answer in time"
    elif isinstance(error, ConnectionRefusedError):
        reason = "nothing listens there; is it running? (corral up)"
    elif isinstance(error, socket.gaierror):
        reason = "its name is not known"
    elif isinstance(error, OSError) and error.strerror:
        reason = error.strerror
    else:
        reason = "the connection broke"
    return Unavailable("unreachable", f"The server at {url} cannot be reached: {reason}.")
