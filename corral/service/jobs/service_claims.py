"""Signed claims of browsers that open the services of a job: the one-time ticket, and the session that it begins.

Both are `CLAIMS.SIGNATURE` in base64; the signature is HMAC-SHA256 by a key for each purpose, derived from the server's.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final, Literal

import msgspec

from corral.kernel.ids import JobId
from corral.kernel.tokens import derive_key

Purpose = Literal["service-ticket", "service-session"]
_LONGEST: Final = 1024
"""Characters of signed claims; role and port are DNS labels."""


class Claims(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The job that a browser may open, for whom and until when."""

    job: JobId
    token: str
    """The id of the token that asked for the ticket; the session ends with it."""
    expires_at: float
    nonce: str
    task: str = ""
    port: str = ""


def sign(key: bytes, purpose: Purpose, claims: Claims) -> str:
    """Return the claims as text, signed for one purpose with a key derived from the server's `key`."""
    body = _text(msgspec.json.encode(claims))
    return f"{body}.{_signature(key, purpose, body)}"


def read(key: bytes, purpose: Purpose, text: str, now: float) -> Claims | None:
    """Return the claims; None if the text is not this server's for this purpose, or has expired."""
    body, dot, signature = text.partition(".")
    if len(text) > _LONGEST or not text.isascii() or not dot:
        return None
    if not hmac.compare_digest(signature, _signature(key, purpose, body)):
        return None
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=Claims)
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        return None
    return claims if now < claims.expires_at else None


def fingerprint(key: bytes, text: str) -> str:
    """The hash under which the use of a ticket is stored. Nobody without the key can find a sign-in link of this hash."""
    return hmac.new(derive_key(key, "service-ticket-use"), text.encode(), hashlib.sha256).hexdigest()


def _signature(key: bytes, purpose: Purpose, body: str) -> str:
    return _text(hmac.new(derive_key(key, purpose), body.encode(), hashlib.sha256).digest())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
