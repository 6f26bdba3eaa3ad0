"""Sign in for JWTs at OpenPAI's API, and manage its tokens; each is stored as a token here and can be revoked."""

from __future__ import annotations

from typing import Final

from corral.model.accounts import Token, User
from corral.model.openpai_accounts import OpenPaiSignIn
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.openpai import jwt
from corral.service.openpai.errors import OpenPaiRefusal, bad_parameters, bad_token, no_user
from corral.service.people.credentials import digest, new_id
from corral.service.people.sessions import Sessions

LOGIN_SECONDS: Final = 86_400
"""Default lifetime of a token, in seconds."""
BROWSER_SECONDS: Final = 7 * 86_400
"""Lifetime of a token for a browser, in seconds."""
SHORTEST, LONGEST = 60, 7 * 86_400
"""The bounds of a lifetime that a caller may ask for, in seconds."""
_MANY: Final = 1000


class OpenPaiTokens(Sessions):
    """Sign in and out at OpenPAI's API, and manage its tokens."""

    async def openpai_login(self, username: str, password: str, seconds: int = LOGIN_SECONDS) -> OpenPaiSignIn:
        """Sign in with a password; the token is valid for `seconds`.

        Raises OpenPaiRefusal.
        """
        if not SHORTEST <= seconds <= LONGEST:
            raise bad_parameters(f"expiration is {SHORTEST} to {LONGEST} seconds.")
        user = await self.store.user(username)
        if user is None:
            await self.passwords.fits("", password[:_MANY])
            raise no_user(username, status=400)
        if not await self.check_password(username, password):
            refused = Decision(False, "wrong-password")
            await self.note(Actor(username), "session.sign-in", Resource("user", username), refused)
            raise OpenPaiRefusal("IncorrectPasswordError", "Password is incorrect.")
        return await self._openpai_session(user, "password", seconds)

    async def openpai_sign_in_token(self, actor: Actor) -> str:
        """A token for the browser of a person who is signed in elsewhere; it ends with that session.

        Raises OpenPaiRefusal.
        """
        user = await self.store.user(actor.user)
        if user is None:
            raise no_user(actor.user, status=400)
        text = (await self._openpai_session(user, "openid", BROWSER_SECONDS)).token
        begun, made = await self.store.openid_session(actor.token_id), await self.store.find_token(digest(text))
        if begun is not None and made is not None:
            await self.store.add_openid_session(made[0].id, *begun, self.clock.now())
        return text

    async def openpai_application_token(self, actor: Actor) -> str:
        """Create a token for a program: it does not expire, and is valid for jobs and for reading."""
        resource = Resource("token", owner=actor.user)
        decision = await self.check(actor, "token.create", resource)
        text, token = await self._openpai_token(actor.user, "application", jwt.APPLICATION, None)
        await self.note(actor, "token.create", resource, decision, id=token.id)
        return text

    async def openpai_tokens(self, actor: Actor) -> list[str]:
        """The actor's valid tokens, the newest first; without those whose text is lost with an old key."""
        await self.check(actor, "token.list", Resource("token", owner=actor.user))
        hashes = await self.store.token_hashes(actor.user)
        imported = await self.imported_token_texts(actor.user)
        now = self.clock.now()
        shown = []
        for token in await self.store.tokens(actor.user):
            if token.kind not in jwt.KINDS or token.revoked_at is not None or _is_over(token, now):
                continue
            text = imported(token) or jwt.text_of(self.key, token)
            if digest(text) == hashes.get(token.id):
                shown.append(text)
        return shown

    async def openpai_revoke(self, actor: Actor, text: str) -> None:
        """Revoke a token, given by its text.

        Raises OpenPaiRefusal when it is another user's, or no longer valid.
        """
        await self.check(actor, "token.revoke", Resource("token", owner=actor.user))
        if not jwt.is_jwt(text):
            raise bad_token()
        if not jwt.is_ours(self.key, text) and not await self.adopt_imported_token(text):
            raise bad_token()
        found = await self.store.find_token(digest(text))
        now = self.clock.now()
        if found is None or found[0].revoked_at is not None or _is_over(found[0], now):
            raise bad_token()
        token = found[0]
        resource = Resource("token", token.id, owner=token.user)
        if token.user != actor.user and not actor.is_admin:
            await self.note(actor, "token.revoke", resource, Decision(False, "own-account"))
            raise OpenPaiRefusal("ForbiddenUserError", f"User {actor.user} is not allowed to do this operation.")
        await self.revoke_token(actor, token.id)

    async def _openpai_session(self, user: User, rule: str, seconds: int) -> OpenPaiSignIn:
        resource = Resource("user", user.name)
        if user.disabled:
            await self.note(Actor(user.name), "session.sign-in", resource, Decision(False, "account-disabled"))
            message = f"User {user.name} is locked; ask an administrator."
            raise OpenPaiRefusal("ForbiddenUserError", message)
        text, _ = await self._openpai_token(user.name, rule, jwt.LOGIN, seconds)
        await self.note(Actor(user.name), "session.sign-in", resource, Decision(True, rule))
        return OpenPaiSignIn(user.name, text, (await self.account(user.name)).is_admin)

    async def _openpai_token(self, user: str, name: str, kind: str, seconds: int | None) -> tuple[str, Token]:
        now = self.clock.now()
        token = Token(new_id(), user, name, kind, now, None if seconds is None else now + seconds)
        text = jwt.text_of(self.key, token)
        await self.store.add_token(token, digest(text))
        return text, token


def _is_over(token: Token, now: float) -> bool:
    return token.expires_at is not None and token.expires_at <= now
