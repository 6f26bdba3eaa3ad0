"""Tokens in the format of OpenPAI's clients: JWTs with the claims `{username, application, …}`.

Such a token is signed (HS256) with a key derived from the server's. Its hash is stored like any other token's, so that
it can be revoked; only the store knows which tokens are valid. Its text is not stored: it is rebuilt from the record
and the key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from corral.kernel.tokens import derive_key
from corral.service.people.token_kinds import APPLICATION

if TYPE_CHECKING:
    from joserfc.jwk import OctKey

    from corral.model.accounts import Token

LOGIN: Final = "openpai"
"""Kind of the tokens that signing in at OpenPAI's API returns."""
KINDS: Final = (LOGIN, APPLICATION)
_PURPOSE: Final = "openpai-jwt"
_SHAPE: Final = re.compile(r"eyJ[A-Za-z0-9_-]{1,1000}\.[A-Za-z0-9_-]{1,2000}\.[A-Za-z0-9_-]{20,200}")


def is_jwt(token: str) -> bool:
    """Whether the text has the form of a JWT."""
    return _SHAPE.fullmatch(token) is not None


def text_of(key: bytes, token: Token) -> str:
    """The text of a token of one of `KINDS`, the same each time; `key` is the server's."""
    from joserfc import jwt

    claims: dict[str, Any] = {
        "username": token.user,
        "application": token.kind == APPLICATION,
        "jobSpecific": False,
        "encodedFrameworkName": "",
        "jti": token.id,
        "iat": int(token.created_at),
    }
    if token.expires_at is not None:
        claims["exp"] = int(token.expires_at)
    return jwt.encode({"alg": "HS256"}, claims, _signing(key))


def is_ours(key: bytes, token: str) -> bool:
    """Whether the server with this key signed the token; neither expiry nor revocation is checked."""
    from joserfc import jwt
    from joserfc.errors import JoseError

    try:
        jwt.decode(token, _signing(key), algorithms=["HS256"])
    except (JoseError, ValueError):
        return False
    return True


def _signing(key: bytes) -> OctKey:
    """The signing key.

    The library is imported for the first such token: most servers see none, and it costs 7 MB.
    """
    from joserfc.jwk import OctKey

    return OctKey.import_key(derive_key(key, _PURPOSE))
