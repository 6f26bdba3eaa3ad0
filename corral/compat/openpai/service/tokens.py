"""Sign in for JWTs at OpenPAI's API, and manage its tokens; each is stored as a token here and can be revoked."""

from __future__ import annotations

from typing import Final

from corral.compat.openpai.records.accounts import OpenPaiSignIn
from corral.compat.openpai.service import jwt
from corral.compat.openpai.service.errors import OpenPaiRefusal, bad_parameters, bad_token, no_user
from corral.compat.openpai.service.imported_tokens import ImportedTokens
from corral.compat.openpai.service.token_format import OpenPaiTokenFormat
from corral.model.accounts import Token, User
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.people.account_passwords import AccountPasswords
from corral.service.people.authentication import Authentication
from corral.service.people.credentials import digest, new_id
from corral.service.people.token_kinds import APPLICATION
from corral.service.people.tokens import Tokens

LOGIN_SECONDS: Final = 86_400
"""Default lifetime of a token, in seconds."""
BROWSER_SECONDS: Final = 7 * 86_400
"""Lifetime of a token for a browser, in seconds."""
SHORTEST, LONGEST = 60, 7 * 86_400
"""The bounds of a lifetime that a caller may ask for, in seconds."""
_MANY: Final = 1000


class OpenPaiTokens:
    """Sign in and out at OpenPAI's API, and manage its tokens."""

    def __init__(
        self,
        context: Context,
        passwords: AccountPasswords,
        imported_tokens: ImportedTokens,
        tokens: Tokens,
        authentication: Authentication,
        token_format: OpenPaiTokenFormat,
    ) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._passwords = passwords
        self._imported_tokens = imported_tokens
        self._tokens = tokens
        self._authentication = authentication
        self._token_format = token_format

    async def sign_in(self, username: str, password: str, seconds: int = LOGIN_SECONDS) -> OpenPaiSignIn:
        """Sign in with a password; the token is valid for `seconds`.

        Raises OpenPaiRefusal.
        """
        if not SHORTEST <= seconds <= LONGEST:
            raise bad_parameters(f"expiration is {SHORTEST} to {LONGEST} seconds.")
        user = await self._store.user(username)
        if user is None:
            await self._passwords.hasher.fits("", password[:_MANY])
            raise no_user(username, status=400)
        if not await self._passwords.check(username, password):
            refused = Decision(False, "wrong-password")
            await self._context.note(Actor(username), "session.sign-in", Resource("user", username), refused)
            raise OpenPaiRefusal("IncorrectPasswordError", "Password is incorrect.")
        return await self._session(user, "password", seconds)

    async def sign_in_token(self, actor: Actor) -> str:
        """A token for the browser of a person who is signed in elsewhere; it ends with that session.

        Raises OpenPaiRefusal.
        """
        user = await self._store.user(actor.user)
        if user is None:
            raise no_user(actor.user, status=400)
        text = (await self._session(user, "openid", BROWSER_SECONDS)).token
        begun, made = await self._store.openid_session(actor.token_id), await self._store.find_token(digest(text))
        if begun is not None and made is not None:
            await self._store.add_openid_session(made[0].id, *begun, self._clock.now())
        return text

    async def create(self, actor: Actor) -> str:
        """Create a token for a program: it does not expire, and is valid for jobs and for reading."""
        resource = Resource("token", owner=actor.user)
        decision = await self._context.check(actor, "token.create", resource)
        text, token = await self._token(actor.user, "application", APPLICATION, None)
        await self._context.note(actor, "token.create", resource, decision, id=token.id)
        return text

    async def all(self, actor: Actor) -> list[str]:
        """The actor's valid tokens, the newest first; without those whose text is lost with an old key."""
        await self._context.check(actor, "token.list", Resource("token", owner=actor.user))
        hashes = await self._store.token_hashes(actor.user)
        imported = await self._imported_tokens.texts(actor.user)
        now = self._clock.now()
        shown = []
        for token in await self._store.tokens(actor.user):
            if token.kind not in jwt.KINDS or token.revoked_at is not None or _is_over(token, now):
                continue
            text = imported(token) or jwt.text_of(self._context.key, token)
            if digest(text) == hashes.get(token.id):
                shown.append(text)
        return shown

    async def revoke(self, actor: Actor, text: str) -> None:
        """Revoke a token, given by its text.

        Raises OpenPaiRefusal when it is another user's, or no longer valid.
        """
        await self._context.check(actor, "token.revoke", Resource("token", owner=actor.user))
        if not self._token_format.has_form(text) or not await self._token_format.accepts(text):
            raise bad_token()
        found = await self._store.find_token(digest(text))
        now = self._clock.now()
        if found is None or found[0].revoked_at is not None or _is_over(found[0], now):
            raise bad_token()
        token = found[0]
        resource = Resource("token", token.id, owner=token.user)
        if token.user != actor.user and not actor.is_admin:
            await self._context.note(actor, "token.revoke", resource, Decision(False, "own-account"))
            raise OpenPaiRefusal("ForbiddenUserError", f"User {actor.user} is not allowed to do this operation.")
        await self._tokens.revoke(actor, token.id)

    async def _session(self, user: User, rule: str, seconds: int) -> OpenPaiSignIn:
        resource = Resource("user", user.name)
        if user.disabled:
            await self._context.note(Actor(user.name), "session.sign-in", resource, Decision(False, "account-disabled"))
            message = f"User {user.name} is locked; ask an administrator."
            raise OpenPaiRefusal("ForbiddenUserError", message)
        text, _ = await self._token(user.name, rule, jwt.LOGIN, seconds)
        await self._context.note(Actor(user.name), "session.sign-in", resource, Decision(True, rule))
        return OpenPaiSignIn(user.name, text, (await self._authentication.account(user.name)).is_admin)

    async def _token(self, user: str, name: str, kind: str, seconds: int | None) -> tuple[str, Token]:
        now = self._clock.now()
        token = Token(new_id(), user, name, kind, now, None if seconds is None else now + seconds)
        text = jwt.text_of(self._context.key, token)
        await self._store.add_token(token, digest(text))
        return text, token


def _is_over(token: Token, now: float) -> bool:
    return token.expires_at is not None and token.expires_at <= now
