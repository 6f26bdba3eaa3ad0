"""ASGI middleware: bounds request bodies, adds security headers, and turns exceptions into error responses.

It is plain ASGI at the cost of two closures per request. `BaseHTTPMiddleware` would cost a task and two memory streams
per request, and would break streaming.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from corral.api.json_responses import Json, refusal
from corral.api.tenants import ErrorShape, shape_for
from corral.kernel.errors import CorralError, InvalidInput, TooLarge
from corral.service.health import refusal_of

DOCUMENT_LIMIT: Final = 1024 * 1024
"""Bytes of any body other than a code archive."""
CODE_PATH: Final = "/api/v3/blobs/code"
UPLOADS_PATH: Final = "/api/v3/blobs/uploads/"
CACHE_PATH: Final = "/api/v3/runtime/cache/bundle"

_TOKEN: Final = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*")
_log = logging.getLogger("corral.api")

_SECURITY: Final = (
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
    (
        "content-security-policy",
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
        "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
)
_RAW_SECURITY: Final = [(name.encode(), value.encode()) for name, value in _SECURITY]


class Guard:
    """Bounds bodies while they stream, adds security headers, and answers exceptions with an error response."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        bounds: Mapping[str, int],
        secure: bool = False,
        folder: Path | None = None,
        shapes: Sequence[ErrorShape] = (),
    ) -> None:
        """`bounds` are the most bytes of bodies at addresses that take more than a document; an address that ends in
        "/" stands for all one level below it. `folder` is the data folder; its full disk may be the reason that a call
        failed.

        `shapes` are those of errors at the addresses of tenants.
        """
        self._app = app
        self._shapes = shapes
        self._folder = folder
        self._bounds = bounds
        self._headers = list(_RAW_SECURITY)
        if secure:
            self._headers.append((b"strict-transport-security", b"max-age=31536000"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def guarded_send(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message.get("headers", ()), *self._headers]
                if scope["path"].startswith("/api/"):
                    MutableHeaders(scope=message).setdefault("cache-control", "no-store")
            await send(message)

        try:
            await self._app(scope, self._bounded(scope, receive), guarded_send)
        except CorralError as error:
            if begun:
                raise
            answer = self._refusal(scope["path"], error)
            await answer(scope, receive, guarded_send)
        except ClientDisconnect:
            _log.debug("the client left in %s %s", scope["method"], without_tokens(scope["path"]))
        except Exception as error:
            lacking = refusal_of(error, self._folder) if isinstance(error, OSError) and not begun else None
            if lacking is not None:
                _log.warning("%s in %s %s", error, scope["method"], without_tokens(scope["path"]))
                answer = self._refusal(scope["path"], lacking)
                await answer(scope, receive, guarded_send)
                return
            correlation = secrets.token_hex(6)
            _log.exception("fault %s in %s %s", correlation, scope["method"], without_tokens(scope["path"]))
            if begun:
                raise
            shape = shape_for(self._shapes, scope["path"])
            answer = fault(correlation) if shape is None else shape.fault(correlation)
            await answer(scope, receive, guarded_send)

    def _refusal(self, path: str, error: CorralError) -> Json:
        shape = shape_for(self._shapes, path)
        return refusal(error) if shape is None else shape.refusal(error)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        above = scope["path"].rpartition("/")[0] + "/"
        limit = self._bounds.get(scope["path"]) or self._bounds.get(above, DOCUMENT_LIMIT)
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        if declared:
            if not declared.isdigit() or len(declared) > 18:
                raise InvalidInput("invalid-length", "The Content-Length header must be a whole number of bytes.")
            if int(declared) > limit:
                raise _too_large(limit)
        taken = 0

        async def bounded_receive() -> Message:
            nonlocal taken
            message = await receive()
            if message["type"] == "http.request":
                taken += len(message.get("body", b""))
                if taken > limit:
                    raise _too_large(limit)
            return message

        return bounded_receive


def without_tokens(path: str) -> str:
    """Return a path for the log without tokens: some clients revoke a token by its value in the URL."""
    return _TOKEN.sub("***", path)


def fault(correlation: str) -> Json:
    """Return the response to an unexpected exception: no traceback, but the id of its entry in the server's log."""
    message = f"The server failed to answer; look for {correlation} in its log (corral doctor says where it is)."
    return Json({"code": "internal-fault", "message": message, "correlation": correlation}, status_code=500)


def _too_large(limit: int) -> TooLarge:
    shown = f"{limit // 1024**2} MiB" if limit >= 1024**2 else f"{limit} bytes"
    return TooLarge("body-too-large", f"The body may have {shown} at most; put large things in code or inputs.")
