"""A slot's calls to the server: its state for orders, its logs, and the two directions of a session."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from corral.runtime.peers import Refused, only_certificate

_MORE_SECONDS = 30.0
"""Seconds that a call may take beyond the wait that it asked for."""
_SILENT_SECONDS = 120.0
"""Seconds without a line of a session's input, of which the server sends one each 15: it is gone then."""
_MAX_ANSWER = 16 * 1024 * 1024
_Answer = TypeVar("_Answer")


class SlotCalls:
    """The calls of one slot. Each thread has a connection of its own, which is kept open."""

    def __init__(self, given: dict[str, Any], instance: str, container: str, host: str) -> None:
        """`given` has the server's URL and certificate, the service's name and its token, which admits the slot."""
        parts = urlsplit(given["url"])
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self._prefix = parts.path.rstrip("/")
        self._certificate = given.get("certificate", "")
        self._admission = given["token"]
        self._token = ""
        self._identity = {"service": given["service"], "instance": instance, "container": container, "host": host}
        self._local = threading.local()

    def sync(self, attempts: dict[str, Any], wait: float) -> Any:
        """Send the state of all attempts; the server's orders, at most `wait` seconds later.

        Raises Refused when the server does not know the slot, OSError when it gives no answer.
        """
        told = {"attempts": attempts, "wait": wait}
        return self._admitted(lambda token: self._json("sync", told, token, wait))

    def probed(self, report: dict[str, Any]) -> None:
        """Send a probe's report of the node's devices. Raises like `sync`."""
        self._json("probe", {**self._identity, "report": report}, self._admission)

    def agent_told(self, report: dict[str, Any]) -> None:
        """Send how the agent of the node began or ended. Raises like `sync`."""
        self._json("agent", {**self._identity, "report": report}, self._admission)

    def append(self, attempt: str, stream: str, offset: int, data: bytes) -> int:
        """Send a part of a log; the offset at which the server wants the next. Raises like `sync`."""
        path = f"log?attempt={quote(attempt)}&stream={stream}&offset={offset}"
        answer = self._admitted(lambda token: self._call("POST", path, data, token, 0))
        return int(json.loads(answer)["next"])

    def send_output(self, session: str, frames: Iterable[bytes]) -> None:
        """Send a session's output frame by frame; the server takes each when its reader does. Raises like `sync`."""
        connection = self._connection(None)
        path = f"{self._prefix}/sessions/{quote(session)}/output"
        try:
            for each in frames:
                if connection.sock is None:
                    _connect_probed(connection)
                connection.request("POST", path, each, self._headers(self._token))
                _checked(connection.getresponse())
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    def input(self, session: str) -> Iterator[bytes]:
        """The lines that the server sends into a session. Raises like `sync`."""
        connection = self._connection(_SILENT_SECONDS)
        try:
            connection.request(
                "GET", f"{self._prefix}/sessions/{quote(session)}/input", headers=self._headers(self._token)
            )
            answer = connection.getresponse()
            if answer.status != 200:
                _checked(answer)
            while line := answer.readline():
                if line.strip():  # an empty line only keeps the connection open
                    yield line
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    def _admitted(self, call: Callable[[str], _Answer]) -> _Answer:
        """Call with the slot's token; a server that refuses it may have restarted, and is asked to admit the slot."""
        token = self._token or self._hello()
        try:
            return call(token)
        except Refused:
            return call(self._hello())

    def _hello(self) -> str:
        """Have the slot admitted; its token. Raises like `sync`."""
        self._token = ""
        self._token = token = str(self._json("hello", self._identity, self._admission)["token"])
        return token

    def _json(self, path: str, body: Any, token: str, wait: float = 0) -> Any:
        try:
            return json.loads(self._call("POST", path, json.dumps(body).encode(), token, wait))
        except ValueError as error:
            raise OSError("the server's answer is not JSON") from error

    def _call(self, method: str, path: str, body: bytes, token: str, wait: float) -> bytes:
        """Call on this thread's connection; a kept one that the server closed meanwhile is opened again."""
        for again in (True, False):
            connection = getattr(self._local, "connection", None)
            kept = connection is not None
            if connection is None:
                connection = self._local.connection = self._connection(wait + _MORE_SECONDS)
            elif connection.sock is not None:
                connection.sock.settimeout(wait + _MORE_SECONDS)
            try:
                connection.request(method, f"{self._prefix}/{path}", body, self._headers(token))
                return _checked(connection.getresponse())
            except (http.client.HTTPException, OSError) as error:
                connection.close()
                self._local.connection = None
                if not (kept and again and isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError))):
                    raise error if isinstance(error, OSError) else OSError(str(error)) from error
        raise OSError("the server closes every connection")

    def _headers(self, token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    def _connection(self, seconds: float | None) -> http.client.HTTPConnection:
        if not self._secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        context = only_certificate(self._certificate) if self._certificate else ssl.create_default_context()
        return http.client.HTTPSConnection(self._host, self._port, timeout=seconds, context=context)


def _connect_probed(connection: http.client.HTTPConnection) -> None:
    """Connect, and have the system probe a silent server's machine: a server may wait without end, a lost one not."""
    connection.connect()
    connected = connection.sock
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):  # these are Linux's
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _checked(answer: http.client.HTTPResponse) -> bytes:
    content = answer.read(_MAX_ANSWER)
    if answer.status in (401, 403, 404):
        raise Refused(f"the server answers {answer.status}: it knows no such slot")
    if answer.status >= 300:
        raise OSError(f"the server answers {answer.status}")
    return content
