"""Create tokens and sign-in links, and hash and check passwords.

Tokens and links are random, long, and stored only as hashes. Passwords are hashed with argon2id, which makes guessing
cost memory and time.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from corral.kernel.plug_ins import plug_ins

HASHES: Final = "corral.password_hashes"
"""The entry-point group of other systems' password hashes.

A stored hash begins with `$NAME$`. The object NAME tells by the hash, the account's name and a password whether they fit.
"""

TOKEN_PREFIX: Final = "crl_"
LINK_SECONDS: Final = 15 * 60.0
"""Seconds for which a one-time sign-in link is valid."""
_HASHER: Final = PasswordHasher()
"""argon2id with the library's defaults: RFC 9106's low-memory profile (64 MiB)."""
_NOBODY: Final = "$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHRzb21lc2FsdA$b3n2UtR1lVKBFEQ5vMaXVIwKcSGM2LxUs0sLMlqfKLM"
"""A hash that no password matches, so that checking an unknown user takes as long as a known one."""


def new_token() -> str:
    """A bearer token: `crl_` and 256 random bits."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def new_link() -> str:
    """The secret of a one-time link: 256 random bits."""
    return secrets.token_urlsafe(32)


def new_id() -> str:
    """A short random id for a token's record."""
    return secrets.token_hex(8)


def digest(secret: str) -> str:
    """The hash that is stored. The secrets are random, so plain SHA-256 is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Passwords:
    """Hashes and checks passwords off the event loop, one at a time, because each takes 64 MiB."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(1)

    async def hash(self, password: str) -> str:
        """The argon2id hash of a password."""
        async with self._turn:
            return await asyncio.to_thread(_HASHER.hash, password)

    async def fits(self, stored: str, password: str) -> bool:
        """Whether the password matches the stored hash; "" matches nothing and takes as long."""
        async with self._turn:
            return await asyncio.to_thread(_fits, stored or _NOBODY, password)

    async def fits_imported(
        self, check: Callable[[str, str, str], bool], stored: str, user: str, password: str
    ) -> bool:
        """Whether the password of `user` matches a hash of another system; takes no less time than any other check."""
        async with self._turn:
            fits = await asyncio.to_thread(check, stored, user, password)
            await asyncio.to_thread(_fits, _NOBODY, password)
        return fits


def _fits(stored: str, password: str) -> bool:
    try:
        _HASHER.verify(stored, password)
    except (VerifyMismatchError, InvalidHashError):
        return False
    return stored != _NOBODY


def imported_check(stored: str) -> Callable[[str, str, str], bool] | None:
    """The check of a stored hash that another system made; None for Corral's own."""
    parts = stored.split("$", 2)
    point = plug_ins(HASHES).get(parts[1]) if len(parts) == 3 else None
    return None if point is None else point.load()
