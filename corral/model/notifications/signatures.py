"""Signatures of webhook messages, and the codes that verify an address.

Signatures follow the Standard Webhooks specification 1.0 (standardwebhooks.com): HMAC-SHA256 over id, time and body.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

from corral.kernel.tokens import derive_key

KEY_PREFIX: Final = "whsec_"
_LETTERS: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""32 signs that nobody confuses."""
_LENGTH: Final = 8


def signing_key(random: bytes) -> str:
    """The text of a signing key of 24 to 64 random bytes."""
    return KEY_PREFIX + base64.b64encode(random).decode()


def signature(key: str, message: str, at: int, body: bytes) -> str:
    """The header `webhook-signature` of a message with this id, sent `at` a time in seconds since 1970.

    Raises ValueError for a key that `signing_key` did not make.
    """
    if not key.startswith(KEY_PREFIX):
        raise ValueError("this is no signing key")
    secret = base64.b64decode(key.removeprefix(KEY_PREFIX), validate=True)
    digest = hmac.new(secret, f"{message}.{at}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def verification_code(key: bytes, channel: str, sent_at: float) -> str:
    """The code that was sent to a channel at a time: 40 bits derived from the server's key, so none is stored."""
    digest = hmac.new(derive_key(key, "notification-code"), f"{channel}@{sent_at!r}".encode(), hashlib.sha256).digest()
    number = int.from_bytes(digest[:8], "big")
    letters = (_LETTERS[number >> (5 * place) & 31] for place in range(_LENGTH))
    return "".join(letters)


def is_code(given: str, expected: str) -> bool:
    """Whether a person's text is the code; spaces, dashes and case do not matter."""
    plain = given.replace(" ", "").replace("-", "").upper()
    return hmac.compare_digest(plain.encode("utf-8", "replace"), expected.encode())
