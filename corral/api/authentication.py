"""Authenticate the caller of a request, by a bearer token or by the portal's session cookie.

A change made with the cookie needs a header that other sites cannot send, as protection against CSRF.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from fastapi import Depends
from starlette.requests import HTTPConnection
from starlette.responses import Response

from corral.api.connection_limits import WAIT_SECONDS, signed_in
from corral.api.rate_limits import ApiCallLimits
from corral.api.services.job_ports import COOKIE_PREFIX
from corral.kernel.errors import CorralError, Forbidden, Unauthenticated
from corral.service.actor import Actor
from corral.workers.pool import INLINE_BYTES

if TYPE_CHECKING:
    from corral.service.service import Service

COOKIE: Final = "corral_session"
CSRF_HEADER: Final = "x-corral-csrf"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_MAX_TOKEN: Final = 4096


def service_of(connection: HTTPConnection) -> Service:
    """Return the service that this application serves."""
    service: Service = connection.app.state.service
    return service


def token_of(connection: HTTPConnection) -> str:
    """Return the token of a call, from its Authorization header or its session cookie.

    Raises Unauthenticated without a token, Forbidden for a change by cookie without the CSRF header, and for a
    WebSocket by cookie from another origin.
    """
    header = connection.headers.get("authorization", "")
    if header:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthenticated("bad-authorization", "The Authorization header must read: Bearer TOKEN.")
        return _bounded(token.strip())
    token = connection.cookies.get(session_cookie(connection), "")
    if not token:
        raise Unauthenticated("not-signed-in", "Sign in first: corral login URL, or send Authorization: Bearer TOKEN.")
    method = connection.scope.get("method", "")
    if connection.headers.get("sec-fetch-site", "") in ("same-site", "cross-site"):
        raise Forbidden("csrf", "The session cookie is good only for this server's own pages.")
    if connection.scope["type"] == "websocket":
        _check_origin(connection)
    elif method not in _SAFE and connection.headers.get(CSRF_HEADER) != "1":
        raise Forbidden("csrf", "A change made with the session cookie needs the header X-Corral-CSRF: 1.")
    return _bounded(token)


async def current_actor(connection: HTTPConnection) -> Actor:
    """Return the authenticated actor of a call, and count the call against the actor's limits.

    Raises Unauthenticated, Forbidden, and TooManyRequests where calls are limited.
    """
    actor = await service_of(connection).authentication.authenticate(token_of(connection))
    await signed_in(connection, actor)
    await check_room(connection)
    if actor.kind != "job":
        calls: ApiCallLimits = connection.app.state.calls
        limit = calls.take(actor.user, connection.scope.get("method", ""), connection.scope["path"])
        if limit is not None:
            return msgspec.structs.replace(actor, submits=limit)
    return actor


async def check_room(connection: HTTPConnection) -> None:
    """Refuse a large body before it is read, when the workers have no room for it.

    Raises the error of `Workers.check_room`, `WAIT_SECONDS` later, so that a client that repeats the call is slowed
    down.
    """
    length = connection.headers.get("content-length", "")
    if not length.isdigit() or int(length) <= INLINE_BYTES:
        return
    try:
        service_of(connection).context.workers.check_room()
    except CorralError:
        await asyncio.sleep(WAIT_SECONDS)
        raise


Caller = Annotated[Actor, Depends(current_actor)]
"""The type of a route parameter that holds the authenticated actor."""


def session_cookie(connection: HTTPConnection) -> str:
    """Return the name of the portal's cookie.

    Where jobs have origins below a domain, or at ports of this host, it has a prefix, with which browsers take it from
    the portal's host alone, or from its answers alone.
    """
    return own_cookie(connection, COOKIE)


def own_cookie(connection: HTTPConnection, name: str) -> str:
    """Return the name that a cookie of the portal has on this server."""
    state = connection.app.state
    if state.job_ports:
        return f"{COOKIE_PREFIX}{name}"
    return f"__Host-{name}" if state.services_domain else name


def set_session(request: HTTPConnection, response: Response, token: str, max_age: int) -> None:
    """Set the session cookie in the browser."""
    name, secure = session_cookie(request), request.app.state.secure
    response.set_cookie(name, token, max_age=max_age, path="/", secure=secure, httponly=True, samesite="strict")


def clear_session(request: HTTPConnection, response: Response) -> None:
    """Delete the session cookie in the browser."""
    name, secure = session_cookie(request), request.app.state.secure
    response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="strict")


def _bounded(token: str) -> str:
    if len(token) > _MAX_TOKEN or not token.isascii():
        raise Unauthenticated("bad-token", "The token is not one of this server's; sign in again with corral login.")
    return token


def _check_origin(connection: HTTPConnection) -> None:
    """Check that a WebSocket opened by cookie comes from this server's own page.

    Browsers cannot add the CSRF header to a WebSocket, but always send the Origin of the page that opened it.
    """
    origin = connection.headers.get("origin", "")
    if origin.partition("://")[2] != connection.headers.get("host", ""):
        raise Forbidden("csrf", "A WebSocket opened with the session cookie must come from this server's own page.")
