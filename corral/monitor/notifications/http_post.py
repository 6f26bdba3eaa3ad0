"""POST to an address that people choose, without becoming a way into the server's own network.

The name is resolved once, each answer is judged, and the connection goes to an answer that may be used, so that a name
whose answers change (DNS rebinding) gains nothing. A name that is unknown and one whose addresses may not be used are
refused with the same words, which hold no address. Redirects are refused, only the head of the answer is read, proxies of
the environment are not used, and everything together ends in time.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from corral.kernel.errors import InvalidInput, Unavailable
from corral.model.notifications.destinations import (
    Destination,
    Network,
    address_of,
    address_refusal,
    host_refusal,
    read_url,
)

SECONDS: Final = 15.0
"""Seconds that a whole call may take."""
_HEAD_BYTES: Final = 16 * 1024
"""Bytes of an answer that are read."""
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: |$)")
_LATER: Final = frozenset({408, 425, 429})
"""Refusals after which a later try may succeed."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""From host and port to addresses; raises OSError."""


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host by the system's resolver, in its order; raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class Poster:
    """Sends requests to addresses that may be used."""

    def __init__(
        self,
        listed: Sequence[Network] = (),
        *,
        resolve: Resolve = resolve,
        seconds: float = SECONDS,
        trust: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        """`listed` are private networks that an administrator allows; plain `http://` goes only to these."""
        self._listed = tuple(listed)
        self._resolve = resolve
        self._seconds = seconds
        self._trust = trust

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Send one request.

        Raises Unavailable if a later try may succeed, InvalidInput if none will. The messages name the host alone.
        """
        try:
            place = read_url(url)
        except ValueError as error:
            raise InvalidInput("bad-webhook", f"The address is not a webhook: {error}.") from None
        try:
            async with asyncio.timeout(self._seconds):
                head = await self._exchange(place, await self._address(place), _request(place, body, headers))
        except TimeoutError:
            raise Unavailable("webhook-silent", f"{place.host} did not answer within {self._seconds:.0f} s.") from None
        except ssl.SSLCertVerificationError as error:
            reason = error.verify_message
            raise Unavailable("webhook-untrusted", f"The certificate of {place.host} is not valid: {reason}.") from None
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise Unavailable("webhook-unreachable", f"{place.host} cannot be reached: {_reason(error)}.") from None
        _judge(place, head)

    async def _address(self, place: Destination) -> str:
        """The first address of the host that may be used."""
        if why := host_refusal(place, self._listed):
            raise InvalidInput("webhook-refused", f"Nothing is sent to {place.host}: {why}.")
        if address_of(place.host) is not None:
            return place.host
        try:
            given = await self._resolve(place.host, place.port)
        except (OSError, UnicodeError):  # the latter for a name that DNS cannot have
            given = ()
        for text in given:
            address = address_of(text)
            if address is not None and not address_refusal(place, address, self._listed):
                return text
        raise Unavailable(
            "webhook-no-address",
            f"{place.host} has no address that messages may go to: a public one with https://, or one in a network that "
            "an administrator lists (notify_private).",
        )

    async def _exchange(self, place: Destination, address: str, request: bytes) -> bytes:
        """Send the request to an address; returns the line of the answer's status."""
        encrypted = {"ssl": self._trust(), "server_hostname": place.host} if place.encrypted else {}
        reader, writer = await asyncio.open_connection(address, place.port, limit=_HEAD_BYTES, **encrypted)  # type: ignore[arg-type]
        try:
            writer.write(request)
            await writer.drain()
            return await reader.readuntil(b"\n")
        finally:
            writer.transport.abort()


def _reason(error: Exception) -> str:
    """What is wrong with a connection, without the address that the host resolved to."""
    number = error.errno if isinstance(error, OSError) else None
    return type(error).__name__ if number is None or number <= 0 else os.strerror(number)


def _request(place: Destination, body: bytes, headers: Mapping[str, str]) -> bytes:
    host = f"[{place.host}]" if ":" in place.host else place.host
    usual = place.port == (443 if place.encrypted else 80)
    lines = [f"POST {place.target} HTTP/1.1", f"Host: {host if usual else f'{host}:{place.port}'}"]
    given = {"Content-Type": "application/json", "User-Agent": "corral", "Accept": "*/*", **headers}
    given |= {"Content-Length": str(len(body)), "Connection": "close"}
    lines += [f"{name}: {value}" for name, value in given.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def is_refusal(status: int) -> bool:
    """Whether an answer says that no later try will succeed."""
    return not 200 <= status < 300 and status < 500 and status not in _LATER


def _judge(place: Destination, head: bytes) -> None:
    found = _STATUS.match(head.strip())
    if found is None:
        raise Unavailable("webhook-no-http", f"{place.host} does not answer as a web server does.")
    status = int(found[1])
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise InvalidInput(
            "webhook-redirects", f"{place.host} answers {status}, a redirect; give the address that it leads to."
        )
    if is_refusal(status):
        raise InvalidInput("webhook-refuses", f"{place.host} answers {status}; check the address.")
    raise Unavailable("webhook-unavailable", f"{place.host} answers {status}.")
