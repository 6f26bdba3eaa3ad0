"""CORS for OpenPAI's API: pages of other origins may read its answers, as in OpenPAI.

These routes accept only a token that the page sends itself; cookies are neither allowed nor read. Corral's own API is
not open to other origins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

ANY: Final = "*"
_PLACES: Final = ("/api/v1", "/api/v2", "/api/internal")
_METHODS: Final = b"GET,HEAD,PUT,PATCH,POST,DELETE"
_NAMES: Final = re.compile(rb"[A-Za-z0-9_\-, ]{1,2000}")


class Cors:
    """Adds CORS headers to answers of OpenPAI's routes, and answers preflight requests."""

    def __init__(self, app: ASGIApp, *, origins: Sequence[str]) -> None:
        """`origins` are the allowed origins; `*` allows any, and an empty list allows none."""
        self._app = app
        self._any = ANY in origins
        self._origins = frozenset(each.rstrip("/").encode("latin-1", "replace") for each in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or not self._origins or not _is_openpais(scope["path"]):
            await self._app(scope, receive, send)
            return
        told = dict(reversed(scope["headers"]))
        headers = self._allowed(told.get(b"origin", b""))
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in told:
            await _answer_preflight(told, headers, send)
            return

        async def allowing(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        await self._app(scope, receive, allowing)

    def _allowed(self, origin: bytes) -> list[tuple[bytes, bytes]]:
        if self._any:
            return [(b"access-control-allow-origin", b"*")]
        same = [(b"vary", b"Origin")]
        return [*same, (b"access-control-allow-origin", origin)] if origin in self._origins else same


def _is_openpais(path: str) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in _PLACES)


async def _answer_preflight(told: dict[bytes, bytes], allowed: list[tuple[bytes, bytes]], send: Send) -> None:
    headers = [*allowed, (b"content-length", b"0")]
    if any(name == b"access-control-allow-origin" for name, _ in allowed):
        headers.append((b"access-control-allow-methods", _METHODS))
        asked = told.get(b"access-control-request-headers", b"")
        if _NAMES.fullmatch(asked):
            headers += [(b"access-control-allow-headers", asked), (b"vary", b"Access-Control-Request-Headers")]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
