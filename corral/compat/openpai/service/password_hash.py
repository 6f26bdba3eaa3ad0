"""OpenPAI's password hashes: accepted once, and then replaced by a hash of Corral's own."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

PREFIX: Final = "$openpai-pbkdf2$"
"""Prefix of a password hash imported from OpenPAI: 64 bytes in hex."""
_ROUNDS: Final = 10_000


def imported_hash(user: str, password: str) -> str:
    """The hash that OpenPAI stores of a password, as kept here until the account signs in.

    PBKDF2 with SHA-512, 10,000 rounds and the user name's MD5 as salt.
    """
    salt = hashlib.md5(user.encode(), usedforsecurity=False).hexdigest().encode()
    return PREFIX + hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ROUNDS, 64).hex()


def fits(stored: str, user: str, password: str) -> bool:
    """Whether the password of `user` matches a hash made by OpenPAI."""
    return hmac.compare_digest(stored, imported_hash(user, password))
