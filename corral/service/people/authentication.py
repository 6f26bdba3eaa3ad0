"""Find out who a caller is: check a bearer token, or act as a named account."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from corral.kernel.errors import Forbidden, Unauthenticated
from corral.kernel.tokens import JOB_TOKEN_PREFIX, verify_job_token
from corral.model.accounts import Group, Token, User
from corral.model.store_writes import JobRecord
from corral.service.access.priority_limit import priority_grant
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.people.credentials import (
    TOKEN_PREFIX,
    digest,
)
from corral.service.people.monitoring_token import MonitoringToken
from corral.service.people.token_kinds import SESSION

_CACHE_SECONDS: Final = 5.0
"""Most seconds for which a token that another process revoked is still accepted."""
_CACHE_SIZE: Final = 10_000
_TOUCH_SECONDS: Final = 60.0


class TokenFormat(Protocol):
    """Bearer tokens in another form than Corral's own, which a tenant accepts."""

    sign_in_kind: str
    """Kind of its tokens that a sign-in returns."""

    def has_form(self, token: str) -> bool:
        """Whether the text has this form."""
        ...

    async def accepts(self, token: str) -> bool:
        """Whether a text of this form may be looked up in the store, as Corral's own tokens are."""
        ...


class Authentication:
    """Find the actor behind a token or a name; what tokens say is cached for seconds."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._formats: list[TokenFormat] = []
        self._monitoring: MonitoringToken | None = None
        self._known: dict[str, tuple[float, Actor, float | None]] = {}
        self._used: dict[str, float] = {}
        self._touched_at = 0.0

    @property
    def sign_in_kinds(self) -> frozenset[str]:
        """The kinds of tokens that a sign-in returns."""
        return frozenset((SESSION, *(each.sign_in_kind for each in self._formats)))

    def add_format(self, form: TokenFormat) -> None:
        """Accept tokens of another form from now on."""
        self._formats.append(form)

    def accept_monitoring(self, token: MonitoringToken) -> None:
        """Accept the token of monitoring from now on. A file without one is logged at once."""
        self._monitoring = token
        token.read()

    def has_form(self, token: str) -> bool:
        """Whether a text has the form of a token of this server, good or not."""
        return token.startswith((TOKEN_PREFIX, JOB_TOKEN_PREFIX)) or any(each.has_form(token) for each in self._formats)

    async def authenticate(self, token: str) -> Actor:
        """Return the actor that a token belongs to.

        Raises Unauthenticated when it is unknown, expired or revoked, or its account is disabled.
        """
        now = self._clock.now()
        if token.startswith(JOB_TOKEN_PREFIX):
            return await self._authenticate_job(token, now)
        form = next((each for each in self._formats if each.has_form(token)), None)
        if form is None and (not token.startswith(TOKEN_PREFIX) or len(token) > 200 or not token.isascii()):
            monitoring = self._monitoring.actor_of(token) if self._monitoring is not None else None
            if monitoring is None:
                raise _bad_token()
            return monitoring
        hashed = digest(token)
        known = self._known.get(hashed)
        if known is None or now - known[0] > _CACHE_SECONDS:
            if form is not None and not await form.accepts(token):
                raise _bad_token()
            known = await self._keep(hashed, await self._store.find_token(hashed), now)
        return self._unexpired(hashed, known, now)

    async def of_token(self, token_id: str) -> Actor:
        """Return the actor of the token with this id, which the caller must have verified otherwise.

        Raises Unauthenticated when it is unknown, expired or revoked, or its account is disabled.
        """
        now, key = self._clock.now(), f"id:{token_id}"
        known = self._known.get(key)
        if known is None or now - known[0] > _CACHE_SECONDS:
            known = await self._keep(key, await self._store.find_token_by_id(token_id), now)
        return self._unexpired(key, known, now)

    def _unexpired(self, key: str, known: tuple[float, Actor, float | None], now: float) -> Actor:
        _, actor, expires_at = known
        if expires_at is not None and expires_at <= now:
            self._known.pop(key, None)
            raise Unauthenticated("token-expired", "This token has expired; sign in again with `corral login`.")
        self._touch(actor.token_id, now)
        return actor

    async def _keep(
        self, key: str, found: tuple[Token, User, list[Group]] | None, now: float
    ) -> tuple[float, Actor, float | None]:
        """Keep what a token says under a key, for seconds."""
        if found is None:
            self._known.pop(key, None)
            raise _bad_token()
        token, user, groups = found
        if token.revoked_at is not None:
            raise Unauthenticated("token-revoked", "This token was revoked; sign in again with `corral login`.")
        if user.disabled:
            raise Unauthenticated("account-disabled", f"The account {user.name} is disabled; ask an administrator.")
        if len(self._known) >= _CACHE_SIZE:
            self._known.clear()
        known = (now, await self._actor(token, user, groups), token.expires_at)
        self._known[key] = known
        return known

    async def account(self, name: str) -> Actor:
        """The account that the server acts as, for example for a Framework or a Kubernetes object.

        Raises Forbidden when there is no such account, or it is disabled.
        """
        user = await self._store.user(name)
        if user is None or user.disabled:
            what = "disabled" if user else "not there"
            raise Forbidden("no-account", f"The account {name[:100]} is {what}; an administrator can mend that.")
        groups = [group for group in await self._store.groups() if group.name in user.memberships]
        return await self._actor(Token("", user.name, "object", "object", self._clock.now()), user, groups)

    async def job_owner(self, record: JobRecord) -> Actor:
        """The job's owner as an actor, with the grants of its groups; a deleted account has only its name."""
        user = None if record.orphaned else await self._store.user(record.user)
        if user is None:
            return Actor(record.user)
        groups = [group for group in await self._store.groups() if group.name in user.memberships]
        return actor_of(Token("", user.name, "owner", "api", 0.0), user, groups)

    async def _actor(self, token: Token, user: User, groups: list[Group]) -> Actor:
        actor = actor_of(token, user, groups)
        if not actor.manages:
            return actor
        return msgspec.structs.replace(actor, manages=(await self._store.admission()).managed(actor.manages))

    async def _authenticate_job(self, token: str, now: float) -> Actor:
        job = verify_job_token(self._context.key, token, now)
        standing = await self._store.standing_of(job) if job is not None else None
        if job is None or standing is None:
            raise _bad_token()
        owner, live = standing
        if not live:
            raise Unauthenticated("job-over", "The job of this token is over, and its token with it.")
        return Actor(owner, "job", kind="job", job=job)

    def _touch(self, token_id: str, now: float) -> None:
        self._used[token_id] = now
        if now - self._touched_at >= _TOUCH_SECONDS:
            self._touched_at = now
            used, self._used = self._used, {}
            self._context.run_in_background(self._store.touch_tokens(used))

    def forget(self, token_id: str = "", user: str = "") -> None:
        """Drop a token or a user's tokens from the cache, after a change."""
        for key, (_, actor, _) in list(self._known.items()):
            if actor.token_id == token_id or actor.user == user:
                del self._known[key]

    def forget_all(self) -> None:
        """Drop all tokens from the cache, after a change of what groups grant."""
        self._known.clear()


def _bad_token() -> Unauthenticated:
    return Unauthenticated("bad-token", "The token is not one of this server's; sign in again with `corral login`.")


def actor_of(token: Token, user: User, groups: list[Group]) -> Actor:
    """An account as an actor, with the grants of its groups."""
    most_priority, of = priority_grant(user, groups)
    return Actor(
        user.name,
        "admin" if any(group.admin for group in groups) else user.role,
        user.groups,
        token.id,
        token.kind,
        queues=tuple(queue for group in groups for queue in group.queues),
        storages=tuple(storage for group in groups for storage in group.storages),
        manages=tuple(queue for group in groups for queue in group.manages),
        max_priority=most_priority,
        max_priority_of=of,
    )
