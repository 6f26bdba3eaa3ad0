"""Resolve references in a command to the addresses of started tasks, which the server knows.

The server may be away for a while, and its restart must not cost a job. So every failure except a refusal is retried
until the barrier's time is over.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    import http.client
    import ssl

RUNTIME_WORD = "$(runtime)"
_PEER = re.compile(r"\$\(peer:([a-z0-9-]+)-(\d+):(?:(host)|port:([a-z0-9-]+))\)")
_SECRET = re.compile(r"\$\(secret:([a-z0-9-]+)\)")
_MAX_ANSWER = 64 * 1024 * 1024
_ANSWER_SECONDS = 30
_CHUNK = 64 * 1024


class Refused(Exception):
    """The server will never answer this task: its token is not accepted, or its job is gone."""


class NotTaken(OSError):
    """The server does not take what was sent, and will not take it later."""


class TimedOut(Exception):
    """The other tasks did not start in time."""


class Unanswered(TimedOut):
    """The server did not answer in time, so the state of the other tasks is unknown."""


class Unresolved(Exception):
    """The command refers to a task or port that the job does not have."""


class Address(NamedTuple):
    """The host and ports of a started task."""

    host: str
    ports: dict[str, list[int]]


def _accepted(status: int, why: str = "") -> None:
    """Raise Refused for an answer of 401, 403 or 404, with the reason `why`.

    Raises NotTaken for 400, 413 and 422, OSError for any other above 299.
    """
    if status in (401, 403, 404):
        raise Refused(f"the server answers {status}{why}")
    if status in (400, 413, 422):
        raise NotTaken(f"the server answers {status}")
    if status >= 300:
        raise OSError(f"the server answers {status}")


class Api:
    """A client for the few server calls that a task may make.

    With a `certificate` the server must present that one; its name and its issuer do not matter.
    """

    def __init__(self, url: str, token: str, certificate: str = "") -> None:
        parts = urlsplit(url)
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port
        self._prefix = parts.path.rstrip("/")
        self._token = token
        self._certificate = certificate

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Call the server; the JSON answer, None for an empty one.

        Raises Refused for 401, 403 and 404, OSError for any other failure (NotTaken for 400, 413 and 422).
        """
        import http.client  # most tasks never call

        connection = self._connection()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            connection.request(method, self._prefix + path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            content = answer.read(_MAX_ANSWER)
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()
        _accepted(answer.status, ": this task's job does not run")
        try:
            return json.loads(content) if content else None
        except ValueError as error:
            raise OSError("the server's answer is not JSON") from error

    def read(self, path: str, piece: int) -> Iterator[bytes]:
        """Download the bytes at a path, in chunks of at most `piece` bytes.

        Raises Refused for 401, 403 and 404, OSError for any other failure or an incomplete answer.
        """
        import http.client

        connection = self._connection()
        try:
            connection.request("GET", self._prefix + path, None, {"Authorization": f"Bearer {self._token}"})
            answer = connection.getresponse()
            _accepted(answer.status)
            while data := answer.read(piece):
                yield data
            if answer.length:
                raise OSError("the connection broke")
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    def upload(self, path: str, file: Any, size: int, digest: str) -> None:
        """Send the bytes of a file by PUT; `digest` is their SHA-256 in hexadecimal.

        Raises Refused for 401, 403 and 404, OSError for any other failure.
        """
        import base64
        import http.client

        connection = self._connection()
        said = base64.b64encode(bytes.fromhex(digest)).decode()
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/gzip",
            "Content-Length": str(size),
            "Content-Digest": f"sha-256=:{said}:",
        }
        try:
            connection.request("PUT", self._prefix + path, file, headers)
            answer = connection.getresponse()
            answer.read(_CHUNK)
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()
        _accepted(answer.status)

    def _connection(self) -> http.client.HTTPConnection:
        import http.client

        seconds = _ANSWER_SECONDS
        if not self._secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        import ssl

        context = only_certificate(self._certificate) if self._certificate else ssl.create_default_context()
        return http.client.HTTPSConnection(self._host, self._port, timeout=seconds, context=context)


def only_certificate(certificate: str) -> ssl.SSLContext:
    """A TLS context that trusts one certificate, and only certificates signed by it."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=certificate)
    return context


def wait_for(
    api: Api,
    attempt: str,
    *,
    everyone: bool,
    wanted: Collection[str],
    timeout: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Address]:
    """Wait until `everyone` or all `wanted` tasks have started; the addresses by task name (`worker-0`).

    Raises TimedOut after `timeout` seconds, Refused at once.
    """
    deadline = clock() + timeout
    pause = 0.02
    trouble, silent = "they have not started", False
    while True:
        left = deadline - clock()
        if left <= 0:
            message = f"waited {timeout:g} s for the other tasks: {trouble}"
            raise Unanswered(message) if silent else TimedOut(message)
        try:
            answer = api.call("GET", f"/api/v3/runtime/peers?attempt={quote(attempt)}")
            known, complete = _addresses(answer), bool(answer["complete"])
            if complete or (not everyone and "*" not in wanted and all(name in known for name in wanted)):
                return known
            missing = [name for name in wanted if name not in known]
            trouble = f"{', '.join(missing[:5])} did not start" if missing else "not all have started"
            silent = False
        except (OSError, KeyError, TypeError, ValueError) as error:
            trouble, silent = f"the server did not answer ({error})", True
        sleep(min(pause, max(0.0, left)))
        pause = min(pause * 1.5, 1.0)


def resolve(text: str, peers: Mapping[str, Address], secret_key: str) -> str:
    """Replace every reference in `text`.

    Raises Unresolved for a task or port that does not exist.
    """

    def address(match: re.Match[str]) -> str:
        name = f"{match[1]}-{int(match[2])}"
        peer = peers.get(name)
        if peer is None:
            raise Unresolved(f"there is no task {name}")
        if match[3]:
            return peer.host
        numbers = peer.ports.get(match[4])
        if not numbers:
            raise Unresolved(f"{name} has no port {match[4]}")
        return str(numbers[0])

    def derived(match: re.Match[str]) -> str:
        return hmac.new(secret_key.encode(), match[1].encode(), hashlib.sha256).hexdigest()

    if "$(" not in text:
        return text
    return _SECRET.sub(derived, _PEER.sub(address, text))


def resolve_command(words: list[str], peers: Mapping[str, Address], program: list[str]) -> list[str]:
    """Replace the references in a command's words. Secrets are refused: arguments are visible to everyone.

    Raises Unresolved.
    """
    found: list[str] = []
    for word in words:
        if _SECRET.search(word):
            raise Unresolved("a secret may be used in the environment only, because everyone can see arguments")
        found += program if word == RUNTIME_WORD else [resolve(word, peers, "")]
    return found


def own_program() -> list[str]:
    """The words that run this runtime."""
    return [sys.executable, sys.argv[0]]


def _addresses(answer: Any) -> dict[str, Address]:
    return {
        f"{peer['role']}-{peer['index']}": Address(str(peer["host"]), dict(peer.get("ports") or {}))
        for peer in answer["peers"]
        if peer.get("host")
    }
