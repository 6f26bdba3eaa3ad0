"""Check the passwords of accounts, and what changing one needs."""

from __future__ import annotations

from typing import Final

from corral.kernel.errors import Forbidden, InvalidInput
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.people.authentication import Authentication
from corral.service.people.credentials import Passwords, imported_check

_LONGEST: Final = 1024


class AccountPasswords:
    """Check and hash the passwords of accounts."""

    def __init__(self, context: Context, authentication: Authentication) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._authentication = authentication
        self.hasher = Passwords()

    async def check(self, user: str, password: str) -> bool:
        """Whether it is the account's password; if it is, a hash of another system is replaced by a new one."""
        stored = await self._store.password_hash(user) if "\0" not in user else ""
        if len(password) > 1024:
            return False
        imported = imported_check(stored)
        if imported is None:
            return await self.hasher.fits(stored, password)
        if not await self.hasher.fits_imported(imported, stored, user, password):
            return False
        await self._store.replace_password_hash(user, stored, await self.hasher.hash(password))
        return True

    async def prove(self, actor: Actor, old_password: str) -> None:
        """Check that the actor, who sets their own password, knows the old one or has just signed in.

        Raises Forbidden `wrong-old-password` or `old-password-needed`.
        """
        if old_password:
            if not await self.check(actor.user, old_password):
                raise Forbidden("wrong-old-password", "The old password is wrong.")
        elif not await self.has_just_signed_in(actor):
            raise Forbidden(
                "old-password-needed",
                "Send the old password with the new one, or sign in again and "
                f"set it within {self._context.fresh_minutes:g} minutes; a token for programs cannot.",
            )

    async def has_just_signed_in(self, actor: Actor) -> bool:
        """Whether the actor's token was issued by a sign-in in the last `fresh_minutes`."""
        token = await self._store.token(actor.token_id)
        if token is None or token.kind not in self._authentication.sign_in_kinds:
            return False
        return self._clock.now() - token.created_at <= self._context.fresh_minutes * 60

    async def hash(self, password: str, shortest: int) -> str:
        """Hash a new password of `shortest` to 1,024 characters.

        Raises InvalidInput `bad-password`.
        """
        if not shortest <= len(password) <= _LONGEST:
            raise InvalidInput("bad-password", f"A password has {shortest} to {_LONGEST} characters.")
        return await self.hasher.hash(password)
