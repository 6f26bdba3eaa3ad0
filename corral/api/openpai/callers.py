"""Why: OpenPAI's clients come with a JWT as a bearer, or with HTTP Basic and an application token; nothing else opens."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Final

import msgspec
from fastapi import Depends
from starlette.requests import HTTPConnection

from corral.api.addresses import address_key
from corral.api.callers import check_room, service_of
from corral.api.connections import signed_in
from corral.api.limits import Counting
from corral.kernel.errors import Unauthenticated
from corral.model.writes import SubmitLimit
from corral.service.actor import Actor
from corral.service.openpai_refusals import administrators_only, applications_not_allowed, bad_token, guest

APPLICATION: Final = "application"
"""The kind of the tokens that programs are given: they do not expire, and do not open everything."""
_MAX_TOKEN: Final = 4096


async def any_caller(connection: HTTPConnection) -> Actor:
    """Who calls, by whatever token of theirs.

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
    """Who calls, or None when nobody says so; a bad token is refused all the same."""
    if not connection.headers.get("authorization", "").strip():
        _count(connection, address_key(connection))
        return None
    return await any_caller(connection)


async def person(connection: HTTPConnection) -> Actor:
    """Who calls, by a token that a sign-in gave.

    Raises OpenPaiRefusal for an application's token.
    """
    actor = await any_caller(connection)
    if actor.kind == APPLICATION:
        raise applications_not_allowed()
    return actor


async def administrator(connection: HTTPConnection) -> Actor:
    """The administrator who calls.

    Raises OpenPaiRefusal for anybody else.
    """
    actor = await any_caller(connection)
    if not actor.is_admin:
        raise administrators_only()
    return actor


async def administrator_in_person(connection: HTTPConnection) -> Actor:
    """The administrator who calls, by a token that a sign-in gave.

    Raises OpenPaiRefusal for anybody else, and for an application's token.
    """
    actor = await person(connection)
    if not actor.is_admin:
        raise administrators_only()
    return actor


AnyCaller = Annotated[Actor, Depends(any_caller)]
"""Whoever has a token, programs too."""
AnyOrNone = Annotated[Actor | None, Depends(caller_or_none)]
"""Whoever has a token, or nobody."""
Person = Annotated[Actor, Depends(person)]
"""Whoever signed in."""
Administrator = Annotated[Actor, Depends(administrator)]
"""An administrator, an administrator's program too."""
AdministratorInPerson = Annotated[Actor, Depends(administrator_in_person)]
"""An administrator who signed in."""


def _count(connection: HTTPConnection, user: str) -> SubmitLimit | None:
    calls: Counting = connection.app.state.openpai_calls
    return calls.take(user, connection.scope.get("method", ""), connection.scope["path"])


async def _bearer(connection: HTTPConnection, token: str) -> Actor:
    if not token or len(token) > _MAX_TOKEN or not token.isascii():
        raise bad_token()
    try:
        actor = await service_of(connection).authenticate(token)
    except Unauthenticated:
        raise bad_token() from None
    await signed_in(connection, actor)
    await check_room(connection)
    if actor.kind == "job":  # good for the runtime's addresses alone
        raise bad_token()
    return actor


async def _basic(connection: HTTPConnection, value: str) -> Actor:
    """`user:token`, whose token is an application's and of that very user."""
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
