"""Authenticate OpenPAI's clients: a JWT as bearer token, or HTTP Basic with an application token."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Final

import msgspec
from fastapi import Depends
from starlette.requests import HTTPConnection

from corral.api.authentication import check_room, service_of
from corral.api.client_addresses import address_key
from corral.api.connection_limits import signed_in
from corral.api.rate_limits import ApiCallLimits
from corral.compat.openpai.service.errors import administrators_only, applications_not_allowed, bad_token, guest
from corral.kernel.errors import Unauthenticated
from corral.model.store_writes import SubmitLimit
from corral.service.actor import Actor

APPLICATION: Final = "application"
"""The kind of tokens for programs: they do not expire, and some calls refuse them."""
_MAX_TOKEN: Final = 4096


async def any_caller(connection: HTTPConnection) -> Actor:
    """Return the authenticated caller, with any kind of token.

    Raises OpenPaiRefusal without a token or with a bad one, TooManyRequests for too many calls.
    """
    actor = await _authenticated(connection)
    limit = _count(connection, actor.user)
    return actor if limit is None else msgspec.structs.replace(actor, submits=limit)


async def _authenticated(connection: HTTPConnection) -> Actor:
    header = connection.headers.get("authorization", "").strip()
    if not header:
        raise guest()
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "bearer":
        return await _bearer(connection, value.strip())
    if scheme.lower() == "basic":
        return await _basic(connection, value.strip())
    raise bad_token()


async def caller_or_none(connection: HTTPConnection) -> Actor | None:
    """Return the caller, or None without a token; a bad token is refused."""
    if not connection.headers.get("authorization", "").strip():
        _count(connection, address_key(connection))
        return None
    return await any_caller(connection)


async def signed_in_caller(connection: HTTPConnection) -> Actor:
    """Return the caller, authenticated by a token from a sign-in.

    Raises OpenPaiRefusal for an application token.
    """
    actor = await any_caller(connection)
    if actor.kind == APPLICATION:
        raise applications_not_allowed()
    return actor


async def administrator(connection: HTTPConnection) -> Actor:
    """Return the caller, who must be an administrator.

    Raises OpenPaiRefusal for anybody else.
    """
    actor = await any_caller(connection)
    if not actor.is_admin:
        raise administrators_only()
    return actor


async def signed_in_administrator(connection: HTTPConnection) -> Actor:
    """Return the caller, who must be an administrator with a token from a sign-in.

    Raises OpenPaiRefusal for anybody else, and for an application token.
    """
    actor = await signed_in_caller(connection)
    if not actor.is_admin:
        raise administrators_only()
    return actor


AnyCaller = Annotated[Actor, Depends(any_caller)]
"""A caller with any token, application tokens included."""
AnyOrNone = Annotated[Actor | None, Depends(caller_or_none)]
"""A caller with any token, or none."""
SignedInCaller = Annotated[Actor, Depends(signed_in_caller)]
"""A caller with a token from a sign-in."""
Administrator = Annotated[Actor, Depends(administrator)]
"""An administrator with any token, application tokens included."""
SignedInAdministrator = Annotated[Actor, Depends(signed_in_administrator)]
"""An administrator with a token from a sign-in."""


def _count(connection: HTTPConnection, user: str) -> SubmitLimit | None:
    calls: ApiCallLimits = connection.app.state.openpai_calls
    return calls.take(user, connection.scope.get("method", ""), connection.scope["path"])


async def _bearer(connection: HTTPConnection, token: str) -> Actor:
    if not token or len(token) > _MAX_TOKEN or not token.isascii():
        raise bad_token()
    try:
        actor = await service_of(connection).authentication.authenticate(token)
    except Unauthenticated:
        raise bad_token() from None
    await signed_in(connection, actor)
    await check_room(connection)
    if actor.kind == "job":  # job tokens are valid for the runtime's routes alone
        raise bad_token()
    return actor


async def _basic(connection: HTTPConnection, value: str) -> Actor:
    """Authenticate `user:token`, where the token is an application token of that user."""
    try:
        user, colon, token = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise bad_token() from None
    if not colon:
        raise bad_token()
    actor = await _bearer(connection, token)
    if actor.kind != APPLICATION or actor.user != user:
        raise bad_token()
    return actor
