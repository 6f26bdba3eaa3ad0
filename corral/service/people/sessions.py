"""Sign-in by one-time link or password, and sign-out."""

from __future__ import annotations

import contextlib

from corral.kernel.errors import Conflict, Forbidden, NotFound, Unauthenticated
from corral.model.accounts import User
from corral.model.records import rfc3339
from corral.model.views import LoginLink, SignedIn
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.people.account_passwords import AccountPasswords
from corral.service.people.credentials import (
    LINK_SECONDS,
    digest,
    new_link,
)
from corral.service.people.token_kinds import SESSION
from corral.service.people.tokens import Tokens


class Sessions:
    """Sign in and out."""

    def __init__(self, context: Context, passwords: AccountPasswords, tokens: Tokens) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._passwords = passwords
        self._tokens = tokens

    async def sign_in_link(self, link: str, *, name: str = "") -> SignedIn:
        """Sign in with a one-time link, which is then used up.

        Raises Unauthenticated.
        """
        user = await self._store.use_login_link(digest(link), self._clock.now())
        return await self.sign_in(user, name or "sign-in link", "sign-in-link")

    async def sign_in_password(self, user: str, password: str) -> SignedIn:
        """Sign in with a password; an unknown user takes as long as a wrong password.

        Raises Unauthenticated.
        """
        if not await self._passwords.check(user, password):
            actor = Actor(user[:100])
            await self._context.note(
                actor, "session.sign-in", Resource("user", user[:100]), Decision(False, "wrong-password")
            )
            raise Unauthenticated("wrong-password", "User name or password is wrong.")
        return await self.sign_in(user, "password", "password")

    async def sign_in(self, name: str, what: str, rule: str) -> SignedIn:
        """Sign in an account that was checked by `rule`; `what` names its token.

        Raises Unauthenticated when it is disabled.
        """
        user = await self._store.user(name)
        if user is None or user.disabled:
            raise Unauthenticated("account-disabled", f"The account {name} is disabled; ask an administrator.")
        secret, token = await self._tokens.issue(user.name, what, SESSION, self._context.token_days)
        await self._context.note(Actor(name), "session.sign-in", Resource("user", name), Decision(True, rule))
        assert token.expires_at is not None
        return SignedIn(secret, user.name, user.role, rfc3339(token.expires_at))

    async def sign_out(self, actor: Actor) -> None:
        """Revoke the token of this call."""
        await self._tokens.end(actor.token_id)

    async def login_link(self, actor: Actor, user: str) -> LoginLink:
        """Create a one-time sign-in link for an account.

        Raises NotFound.
        """
        resource = Resource("user", user, owner=user)
        decision = await self._context.check(actor, "user.link", resource)
        link = await self.link_for(user)
        await self._context.note(actor, "user.link", resource, decision)
        return link

    async def first_link(self, administrator: str, uid: int | None = None) -> LoginLink:
        """The sign-in link that `corral up` prints; creates the administrator's account if it is missing.

        Raises Forbidden when the account exists and is not an administrator's.
        """
        user = await self._store.user(administrator)
        if user is None:
            user = User(administrator, "admin", uid=uid, created_at=self._clock.now())
            with contextlib.suppress(Conflict):  # another replica may start at the same moment
                await self._store.add_user(user)
                await self._context.note(
                    Actor("server"), "user.create", Resource("user", administrator), Decision(True, "first-start")
                )
        elif user.role != "admin" or user.disabled:
            raise Forbidden("not-an-administrator", f"{administrator} is not an administrator; sign in as one.")
        return await self.link_for(administrator)

    async def administered(self) -> bool:
        """Whether somebody has signed in as an administrator, in whatever way."""
        administrators = [user.name for user in await self._store.all_users() if user.role == "admin"]
        return any([await self._store.tokens(name) for name in administrators])

    async def link_for(self, user: str) -> LoginLink:
        """Make a sign-in link for an account, without a check of access.

        Raises NotFound.
        """
        if await self._store.user(user) is None:
            raise NotFound("user-not-found", f"There is no user {user[:100]}.")
        link, now = new_link(), self._clock.now()
        await self._store.add_login_link(digest(link), user, now, now + LINK_SECONDS)
        return LoginLink(link, rfc3339(now + LINK_SECONDS))
