"""Sign-in by link or password, and the revocable tokens that identify callers from then on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthenticated
from corral.kernel.tokens import JOB_TOKEN_PREFIX, verify_job_token
from corral.model.accounts import Group, Token, User
from corral.model.records import rfc3339, rfc3339_or_none
from corral.model.views import LoginLink, NewToken, SignedIn, TokenView
from corral.service.access.priority_limit import priority_grant
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.base import ServiceBase
from corral.service.openpai import jwt
from corral.service.people.credentials import (
    IMPORTED_PREFIX,
    LINK_SECONDS,
    TOKEN_PREFIX,
    Passwords,
    digest,
    new_id,
    new_link,
    new_token,
)

_CACHE_SECONDS: Final = 5.0
"""Most seconds for which a token that another process revoked is still accepted."""
_CACHE_SIZE: Final = 10_000
_TOUCH_SECONDS: Final = 60.0
_DAY: Final = 86_400.0
API: Final = "api"
"""Kind of the tokens that people create for programs."""
_SESSION: Final = "session"
"""Kind of the tokens that a sign-in returns."""
MAX_TOKEN_DAYS: Final = 3650.0


class Sessions(ServiceBase):
    """Check, create and revoke tokens."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.passwords = Passwords()
        self._known: dict[str, tuple[float, Actor, float | None]] = {}
        self._used: dict[str, float] = {}
        self._touched_at = 0.0

    async def authenticate(self, token: str) -> Actor:
        """Return the actor that a token belongs to.

        Raises Unauthenticated when it is unknown, expired or revoked, or its account is disabled.
        """
        now = self.clock.now()
        if token.startswith(JOB_TOKEN_PREFIX):
            return await self._authenticate_job(token, now)
        signed = jwt.is_jwt(token)
        if not signed and (not token.startswith(TOKEN_PREFIX) or len(token) > 200 or not token.isascii()):
            raise _bad_token()
        hashed = digest(token)
        known = self._known.get(hashed)
        if known is None or now - known[0] > _CACHE_SECONDS:
            if signed and not jwt.is_ours(self.key, token) and not await self.adopt_imported_token(token):
                raise _bad_token()
            known = await self._look_up(hashed, now)
        _, actor, expires_at = known
        if expires_at is not None and expires_at <= now:
            self._known.pop(hashed, None)
            raise Unauthenticated("token-expired", "This token has expired; sign in again with `corral login`.")
        self._touch(actor.token_id, now)
        return actor

    async def adopt_imported_token(self, token: str) -> bool:
        """Accept an application token of an imported OpenPAI cluster by storing it; here none is accepted."""
        return False

    async def imported_token_texts(self, user: str) -> Callable[[Token], str | None]:
        """Return a function that gives the text of a token made by an OpenPAI cluster; here it always gives None."""
        return lambda _: None

    async def _look_up(self, hashed: str, now: float) -> tuple[float, Actor, float | None]:
        found = await self.store.find_token(hashed)
        if found is None:
            self._known.pop(hashed, None)
            raise _bad_token()
        token, user, groups = found
        if token.revoked_at is not None:
            raise Unauthenticated("token-revoked", "This token was revoked; sign in again with `corral login`.")
        if user.disabled:
            raise Unauthenticated("account-disabled", f"The account {user.name} is disabled; ask an administrator.")
        if len(self._known) >= _CACHE_SIZE:
            self._known.clear()
        known = (now, await self._actor(token, user, groups), token.expires_at)
        self._known[hashed] = known
        return known

    async def account(self, name: str) -> Actor:
        """The account that the server acts as, for example for a Framework or a Kubernetes object.

        Raises Forbidden when there is no such account, or it is disabled.
        """
        user = await self.store.user(name)
        if user is None or user.disabled:
            what = "disabled" if user else "not there"
            raise Forbidden("no-account", f"The account {name[:100]} is {what}; an administrator can mend that.")
        groups = [group for group in await self.store.groups() if group.name in user.memberships]
        return await self._actor(Token("", user.name, "object", "object", self.clock.now()), user, groups)

    async def _actor(self, token: Token, user: User, groups: list[Group]) -> Actor:
        actor = actor_of(token, user, groups)
        if not actor.manages:
            return actor
        return msgspec.structs.replace(actor, manages=(await self.store.admission()).managed(actor.manages))

    async def _authenticate_job(self, token: str, now: float) -> Actor:
        job = verify_job_token(self.key, token, now)
        standing = await self.store.standing_of(job) if job is not None else None
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
            self.run_in_background(self.store.touch_tokens(used))

    def _forget(self, token_id: str = "", user: str = "") -> None:
        """Drop a token or a user's tokens from the cache, after a change."""
        for hashed, (_, actor, _) in list(self._known.items()):
            if actor.token_id == token_id or actor.user == user:
                del self._known[hashed]

    async def sign_in_link(self, link: str, *, name: str = "") -> SignedIn:
        """Sign in with a one-time link, which is then used up.

        Raises Unauthenticated.
        """
        user = await self.store.use_login_link(digest(link), self.clock.now())
        return await self._sign_in(user, name or "sign-in link", "sign-in-link")

    async def sign_in_password(self, user: str, password: str) -> SignedIn:
        """Sign in with a password; an unknown user takes as long as a wrong password.

        Raises Unauthenticated.
        """
        if not await self.check_password(user, password):
            actor = Actor(user[:100])
            await self.note(actor, "session.sign-in", Resource("user", user[:100]), Decision(False, "wrong-password"))
            raise Unauthenticated("wrong-password", "User name or password is wrong.")
        return await self._sign_in(user, "password", "password")

    async def check_password(self, user: str, password: str) -> bool:
        """Whether it is the account's password; if it is, a hash made by OpenPAI is replaced by a new one."""
        stored = await self.store.password_hash(user) if "\0" not in user else ""
        if len(password) > 1024:
            return False
        if not stored.startswith(IMPORTED_PREFIX):
            return await self.passwords.fits(stored, password)
        if not await self.passwords.fits_imported(stored, user, password):
            return False
        await self.store.replace_password_hash(user, stored, await self.passwords.hash(password))
        return True

    async def prove(self, actor: Actor, old_password: str) -> None:
        """Check that the actor, who sets their own password, knows the old one or has just signed in.

        Raises Forbidden `wrong-old-password` or `old-password-needed`.
        """
        if old_password:
            if not await self.check_password(actor.user, old_password):
                raise Forbidden("wrong-old-password", "The old password is wrong.")
        elif not await self.has_just_signed_in(actor):
            raise Forbidden(
                "old-password-needed",
                "Send the old password with the new one, or sign in again and "
                f"set it within {self.fresh_minutes:g} minutes; a token for programs cannot.",
            )

    async def has_just_signed_in(self, actor: Actor) -> bool:
        """Whether the actor's token was issued by a sign-in in the last `fresh_minutes`."""
        token = await self.store.token(actor.token_id)
        if token is None or token.kind not in (_SESSION, jwt.LOGIN):
            return False
        return self.clock.now() - token.created_at <= self.fresh_minutes * 60

    async def _sign_in(self, name: str, what: str, rule: str) -> SignedIn:
        user = await self.store.user(name)
        if user is None or user.disabled:
            raise Unauthenticated("account-disabled", f"The account {name} is disabled; ask an administrator.")
        secret, token = await self._make_token(user.name, what, _SESSION, self.token_days)
        await self.note(Actor(name), "session.sign-in", Resource("user", name), Decision(True, rule))
        assert token.expires_at is not None
        return SignedIn(secret, user.name, user.role, rfc3339(token.expires_at))

    async def _make_token(self, user: str, name: str, kind: str, days: float) -> tuple[str, Token]:
        secret, now = new_token(), self.clock.now()
        token = Token(new_id(), user, name, kind, now, now + days * _DAY)
        await self.store.add_token(token, digest(secret))
        return secret, token

    async def sign_out(self, actor: Actor) -> None:
        """Revoke the token of this call."""
        await self._end_token(actor.token_id)

    async def _end_token(self, token_id: str) -> None:
        await self.store.revoke_token(token_id, self.clock.now())
        self._forget(token_id=token_id)
        await self.streams.look()

    async def tokens(self, actor: Actor) -> list[TokenView]:
        """The actor's tokens that are not revoked."""
        await self.check(actor, "token.list", Resource("token", owner=actor.user))
        return [_token_view(token) for token in await self.store.tokens(actor.user) if token.revoked_at is None]

    async def create_token(self, actor: Actor, *, name: str = "", days: float = 90.0) -> NewToken:
        """Create a token for the actor's own account; only this answer shows it.

        Raises InvalidInput for a lifetime out of bounds.
        """
        resource = Resource("token", name, owner=actor.user)
        decision = await self.check(actor, "token.create", resource)
        if not 0 < days <= MAX_TOKEN_DAYS:
            raise InvalidInput("bad-days", f"A token is valid for at most {MAX_TOKEN_DAYS:.0f} days.")
        secret, token = await self._make_token(actor.user, name or "token", API, days)
        await self.note(actor, "token.create", resource, decision, id=token.id)
        return NewToken(
            token.id,
            token.name,
            token.kind,
            token.user,
            rfc3339(token.created_at),
            rfc3339_or_none(token.expires_at),
            token=secret,
        )

    async def revoke_token(self, actor: Actor, token_id: str) -> None:
        """Revoke a token.

        Raises NotFound, also for another account's token unless the actor is an administrator.
        """
        token = await self.store.token(token_id)
        if token is None or (token.user != actor.user and not actor.is_admin):
            raise NotFound(
                "token-not-found", f"There is no token {token_id[:100]} of yours; `corral token` lists them."
            )
        resource = Resource("token", token_id, owner=token.user)
        decision = await self.check(actor, "token.revoke", resource)
        await self._end_token(token_id)
        await self.note(actor, "token.revoke", resource, decision)

    async def login_link(self, actor: Actor, user: str) -> LoginLink:
        """Create a one-time sign-in link for an account.

        Raises NotFound.
        """
        resource = Resource("user", user, owner=user)
        decision = await self.check(actor, "user.link", resource)
        link = await self._link_for(user)
        await self.note(actor, "user.link", resource, decision)
        return link

    async def first_link(self, administrator: str, uid: int | None = None) -> LoginLink:
        """The sign-in link that `corral up` prints; creates the administrator's account if it is missing.

        Raises Forbidden when the account exists and is not an administrator's.
        """
        user = await self.store.user(administrator)
        if user is None:
            user = User(administrator, "admin", uid=uid, created_at=self.clock.now())
            with contextlib.suppress(Conflict):  # another replica may start at the same moment
                await self.store.add_user(user)
                await self.note(
                    Actor("server"), "user.create", Resource("user", administrator), Decision(True, "first-start")
                )
        elif user.role != "admin" or user.disabled:
            raise Forbidden("not-an-administrator", f"{administrator} is no administrator; sign in as one who is.")
        return await self._link_for(administrator)

    async def _link_for(self, user: str) -> LoginLink:
        if await self.store.user(user) is None:
            raise NotFound("user-not-found", f"There is no user {user[:100]}.")
        link, now = new_link(), self.clock.now()
        await self.store.add_login_link(digest(link), user, now, now + LINK_SECONDS)
        return LoginLink(link, rfc3339(now + LINK_SECONDS))


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
