"""SPNEGO for clients of Hadoop's daemons (RFC 4559): who answers 401 with `Negotiate` is called again with a ticket.

The daemon's answer has a cookie, which later calls carry: a ticket is sent once for as long as the cookie is valid.
Bodies are the caller's to bound, so this is no `Auth` of an HTTP library, which reads a refusal's whole body.
"""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from corral.kernel.errors import Unavailable
from corral.storage.kerberos.tickets import Identity, Tickets

_SECONDS: Final = 20.0
_TOKEN: Final = "delegation"
_MOST_PAGE: Final = 20_000
_MESSAGE: Final = re.compile(r"MESSAGE:</th><td>([^<]{1,2000})<")
_ADVICE: Final = (
    ("Clock skew", "set the clocks of both machines, such as by NTP"),
    ("No valid credentials provided", "name the daemon by the host name of its HTTP principal"),
)
_USER: Final = "user.name"
"""The query by which clusters without authentication know a caller. Those with Kerberos refuse another name than theirs."""


def _no_token(host: str) -> str:
    return ""


class Negotiator:
    """Says with which terms (`params`, `headers`) a daemon is called."""

    def __init__(self, identity: Identity, token_for: Callable[[str], str] = _no_token) -> None:
        """`token_for` returns a delegation token for a host; it is sent instead of a ticket."""
        self._tickets, self._token_for = Tickets(identity), token_for
        self._asked: dict[str, dict[str, str]] = {}
        """The daemons that have asked for Kerberos, with what their calls have instead of the user's name."""

    def terms(self, url: str, terms: Mapping[str, Any]) -> dict[str, Any]:
        """The terms of a first call: without the user's name for a daemon that has asked for Kerberos."""
        given, more = dict(terms), self._asked.get(_origin(url))
        if more is not None:
            named = given.get("params") or {}
            given["params"] = {name: value for name, value in named.items() if name != _USER} | more
        return given

    def is_asked(self, url: str, status: int, challenge: str) -> bool:
        """Whether an answer asks for Kerberos; `challenge` is its header WWW-Authenticate."""
        if status != 401 or not any(each.strip().lower().startswith("negotiate") for each in challenge.split(",")):
            return False
        self._asked.setdefault(_origin(url), {})
        return True

    def signed(self, url: str, terms: Mapping[str, Any]) -> dict[str, Any]:
        """The terms of the call with a token or a ticket. Raises Unavailable."""
        host = urlsplit(url).hostname or ""
        if token := self._token_for(host):
            self._asked[_origin(url)] = {_TOKEN: token}
            return self.terms(url, terms)
        given, header = self.terms(url, terms), self._tickets.header(host)
        return {**given, "headers": {**(given.get("headers") or {}), "Authorization": header}}

    async def signed_soon(self, url: str, terms: Mapping[str, Any]) -> dict[str, Any]:
        """The same without holding up the event loop. Raises Unavailable."""
        try:
            async with asyncio.timeout(_SECONDS):
                return await asyncio.to_thread(self.signed, url, terms)
        except TimeoutError:
            message = f"Kerberos gives no ticket: the KDC did not answer within {_SECONDS:.0f} s."
            raise Unavailable("kerberos", message, retry_after=10) from None


def words_of_page(content: bytes) -> str:
    """The message of Hadoop's page in HTML, by which a daemon refuses a ticket; "" without one."""
    found = _MESSAGE.search(content[:_MOST_PAGE].decode(errors="replace"))
    said = html.unescape(found[1]).strip().rstrip(".")[:300] if found else ""
    return next((f"{said}; {advice}" for words, advice in _ADVICE if words in said), said)


def _origin(url: str) -> str:
    return urlsplit(url).netloc
