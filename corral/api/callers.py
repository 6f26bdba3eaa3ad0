"""Why: who calls is settled once, before any route: by a bearer token, or by the portal's cookie that no page can forge."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from fastapi import Depends
from starlette.requests import HTTPConnection
from starlette.responses import Response

from corral.api.connections import WAIT_SECONDS, signed_in
from corral.api.limits import Counting
from corral.kernel.errors import CorralError, Forbidden, Unauthenticated
from corral.service.actor import Actor
from corral.service.base import LIGHT

if TYPE_CHECKING:
    from corral.service.service import Service

COOKIE: Final = "corral_session"
CSRF_HEADER: Final = "x-corral-csrf"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_MAX_TOKEN: Final = 4096


def service_of(connection: HTTPConnection) -> Service:
    """The service that this application answers from."""
    service: Service = connection.app.state.service
    return service


def token_of(connection: HTTPConnection) -> str:
    """The token that came with a call, however it came.

    Raises Unauthenticated without one, Forbidden for a change by cookie that may be forged.
    """
    header = connection.headers.get("authorization", "")
    if header:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthenticated("bad-authorization", "The Authorization header must read: Bearer TOKEN.")
        return _bounded(token.strip())
    token = connection.cookies.get(COOKIE, "")
    if not token:
        raise Unauthenticated("not-signed-in", "Sign in first: corral login URL, or send Authorization: Bearer TOKEN.")
    method = connection.scope.get("method", "")
    if connection.scope["type"] == "websocket":
        _check_origin(connection)
    elif method not in _SAFE and connection.headers.get(CSRF_HEADER) != "1":
        raise Forbidden("csrf", "A change made with the session cookie needs the header X-Corral-CSRF: 1.")
    return _bounded(token)


async def current_actor(connection: HTTPConnection) -> Actor:
    """Who calls.

    Raises Unauthenticated, Forbidden, and TooManyRequests where calls are limited.
    """
    actor = await service_of(connection).authenticate(token_of(connection))
    await signed_in(connection, actor)
    await check_room(connection)
    if actor.kind != "job":
        calls: Counting = connection.app.state.calls
        limit = calls.take(actor.user, connection.scope.get("method", ""), connection.scope["path"])
        if limit is not None:
            return msgspec.structs.replace(actor, submits=limit)
    return actor


async def check_room(connection: HTTPConnection) -> None:
    """Refuse a large body before it is read, when there is no room to work on it.

    Raises as `Workers.check_room`, a moment later: whoever sends it again and again has to wait for that.
    """
    length = connection.headers.get("content-length", "")
    if not length.isdigit() or int(length) <= LIGHT:
        return
    try:
        service_of(connection).workers.check_room()
    except CorralError:
        await asyncio.sleep(WAIT_SECONDS)
        raise


Caller = Annotated[Actor, Depends(current_actor)]
"""A route's first parameter: the authenticated actor."""


def set_session(response: Response, token: str, max_age: int, *, secure: bool) -> None:
    """Hand the browser its session cookie."""
    response.set_cookie(COOKIE, token, max_age=max_age, path="/", secure=secure, httponly=True, samesite="strict")


def clear_session(response: Response, *, secure: bool) -> None:
    """Take the session cookie back."""
    response.delete_cookie(COOKIE, path="/", secure=secure, httponly=True, samesite="strict")


def _bounded(token: str) -> str:
    if len(token) > _MAX_TOKEN or not token.isascii():
        raise Unauthenticated("bad-token", "The token is not one of this server's; sign in again with corral login.")
    return token


def _check_origin(connection: HTTPConnection) -> None:
    """Browsers send no header of ours with a WebSocket, but always say whose page opened it."""
    origin = connection.headers.get("origin", "")
    if origin.partition("://")[2] != connection.headers.get("host", ""):
        raise Forbidden("csrf", "A WebSocket opened with the session cookie must come from this server's own page.")
