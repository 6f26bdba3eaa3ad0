"""The revocable tokens that identify callers once they have signed in."""

from __future__ import annotations

from typing import Final

from corral.kernel.errors import InvalidInput, NotFound
from corral.model.accounts import Token
from corral.model.records import rfc3339, rfc3339_or_none
from corral.model.views import NewToken, TokenView
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.people.authentication import Authentication
from corral.service.people.credentials import (
    digest,
    new_id,
    new_token,
)
from corral.service.people.token_kinds import API

_DAY: Final = 86_400.0
MAX_TOKEN_DAYS: Final = 3650.0


class Tokens:
    """Create, list and revoke tokens."""

    def __init__(self, context: Context, authentication: Authentication) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._authentication = authentication

    async def all(self, actor: Actor) -> list[TokenView]:
        """The actor's tokens that are not revoked."""
        await self._context.check(actor, "token.list", Resource("token", owner=actor.user))
        return [_token_view(token) for token in await self._store.tokens(actor.user) if token.revoked_at is None]

    async def create(self, actor: Actor, *, name: str = "", days: float = 90.0) -> NewToken:
        """Create a token for the actor's own account; only this answer shows it.

        Raises InvalidInput for a lifetime out of bounds.
        """
        resource = Resource("token", name, owner=actor.user)
        decision = await self._context.check(actor, "token.create", resource)
        if not 0 < days <= MAX_TOKEN_DAYS:
            raise InvalidInput("bad-days", f"A token is valid for at most {MAX_TOKEN_DAYS:.0f} days.")
        secret, token = await self.issue(actor.user, name or "token", API, days)
        await self._context.note(actor, "token.create", resource, decision, id=token.id)
        return NewToken(
            token.id,
            token.name,
            token.kind,
            token.user,
            rfc3339(token.created_at),
            rfc3339_or_none(token.expires_at),
            token=secret,
        )

    async def revoke(self, actor: Actor, token_id: str) -> None:
        """Revoke a token.

        Raises NotFound, also for another account's token unless the actor is an administrator.
        """
        token = await self._store.token(token_id)
        if token is None or (token.user != actor.user and not actor.is_admin):
            raise NotFound(
                "token-not-found", f"There is no token {token_id[:100]} of yours; `corral token` lists them."
            )
        resource = Resource("token", token_id, owner=token.user)
        decision = await self._context.check(actor, "token.revoke", resource)
        await self.end(token_id)
        await self._context.note(actor, "token.revoke", resource, decision)

    async def issue(self, user: str, name: str, kind: str, days: float) -> tuple[str, Token]:
        """Store a new token of a kind for an account; return its text and its record."""
        secret, now = new_token(), self._clock.now()
        token = Token(new_id(), user, name, kind, now, now + days * _DAY)
        await self._store.add_token(token, digest(secret))
        return secret, token

    async def end(self, token_id: str) -> None:
        """Revoke a token without a check of access, and end the streams that it opened."""
        await self._store.revoke_token(token_id, self._clock.now())
        self._authentication.forget(token_id=token_id)
        await self._context.streams.look()


def _token_view(token: Token) -> TokenView:
    return TokenView(
        token.id,
        token.name,
        token.kind,
        token.user,
        rfc3339(token.created_at),
        rfc3339_or_none(token.expires_at),
        rfc3339_or_none(token.last_used_at),
    )
