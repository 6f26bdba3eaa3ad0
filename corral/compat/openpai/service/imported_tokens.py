"""Tokens that an imported OpenPAI cluster issued; they stay valid here until they are revoked.

A token is valid if its hash is in the store, like any other. Exported tokens are stored at the import. Other tokens are
verified with the imported secret, and stored when they are first used.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from corral.model.accounts import Token
from corral.service.context import Context
from corral.service.people.credentials import digest, new_id
from corral.service.people.token_kinds import APPLICATION

SECRET_OWNER: Final = "server:openpai"
_SECRET: Final = "jwt-secret"
_ACCOUNT: Final = "account"
WELL_KNOWN: Final = frozenset({"pai-secret", "HelloPAI", "hello"})
"""Secrets in OpenPAI's own files: anybody could sign with them."""
SHORTEST: Final = 12


class ImportedSecret(msgspec.Struct, frozen=True):
    """The secret with which a cluster signed its tokens."""

    secret: str
    listed: bool = False
    """Whether its tokens were exported, so that no others are accepted."""
    at: float = 0.0
    """When it was imported, in Unix seconds."""

    def __repr__(self) -> str:
        return "ImportedSecret(…)"


class ImportedTokens:
    """Accept tokens of an imported OpenPAI cluster."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock

    async def secret(self) -> ImportedSecret | None:
        """The imported secret; None without one."""
        sealed = (await self._store.secrets(SECRET_OWNER)).get(_SECRET)
        if sealed is None:
            return None
        return msgspec.json.decode(self._context.secret_box.open(SECRET_OWNER, _SECRET, sealed), type=ImportedSecret)

    async def put_secret(self, imported: ImportedSecret) -> None:
        """Store the secret of a cluster, sealed."""
        now = self._clock.now()
        text = msgspec.json.encode(msgspec.structs.replace(imported, at=now)).decode()
        await self._store.put_secret(
            SECRET_OWNER, _SECRET, self._context.secret_box.seal(SECRET_OWNER, _SECRET, text), now
        )

    async def mark_account(self, user: str) -> None:
        """Record, for as long as the account exists, that it comes from the cluster."""
        owner = texts_owner(user)
        await self._store.put_secret(
            owner, _ACCOUNT, self._context.secret_box.seal(owner, _ACCOUNT, user), self._clock.now()
        )

    async def adopt(self, token: str) -> bool:
        """Accept an application token of the imported cluster by storing it; False if it is not one."""
        if await self._store.find_token(digest(token)) is not None:
            return True
        imported = await self.secret()
        if imported is None or imported.listed:
            return False
        claims = verified(token, imported.secret)
        if claims is None or not await self._is_of_the_account(claims, imported.at):
            return False
        return await self.keep(token, claims)

    async def _is_of_the_account(self, claims: Mapping[str, Any], since: float) -> bool:
        """Whether the account is the one that the token was issued to, not a later account of the same name."""
        name, issued = claims.get("username"), claims.get("iat")
        user = await self._store.user(name) if isinstance(name, str) else None
        if user is None:
            return False
        if user.created_at <= since or (isinstance(issued, int | float) and issued >= user.created_at):
            return True
        return _ACCOUNT in await self._store.secrets(texts_owner(user.name))

    async def keep(self, token: str, claims: Mapping[str, Any]) -> bool:
        """Store an application token; False if it is none, if it expires, or if its account is missing here."""
        user, issued = claims.get("username"), claims.get("iat")
        if claims.get("application") is not True or claims.get("jobSpecific") or not isinstance(user, str):
            return False
        if "exp" in claims or await self._store.user(user) is None:
            return False
        at = float(issued) if isinstance(issued, int | float) else self._clock.now()
        kept = Token(new_id(), user, "imported from OpenPAI", APPLICATION, at)
        if await self._store.add_token_once(kept, digest(token)):
            owner = texts_owner(user)
            await self._store.put_secret(
                owner, kept.id, self._context.secret_box.seal(owner, kept.id, token), self._clock.now()
            )
        return True

    async def texts(self, user: str) -> Callable[[Token], str | None]:
        """Return a function that gives the text of an account's imported token, and None for other tokens."""
        owner = texts_owner(user)
        sealed = await self._store.secrets(owner)

        def text(token: Token) -> str | None:
            return self._context.secret_box.open(owner, token.id, sealed[token.id]) if token.id in sealed else None

        return text


def texts_owner(user: str) -> str:
    """The owner name under which the texts of an account's imported tokens are sealed."""
    return f"openpai-tokens:{user}"


def verified(token: str, secret: str) -> dict[str, Any] | None:
    """The claims of a token that was signed (HS256) with the secret; None if it was not.

    Not left to a library, since libraries refuse short secrets, and a cluster may have one.
    """
    head, _, signature = token.rpartition(".")
    try:
        header = msgspec.json.decode(_bytes(head.partition(".")[0]), type=dict[str, Any])
        claims = msgspec.json.decode(_bytes(head.partition(".")[2]), type=dict[str, Any])
        given = _bytes(signature)
    except (ValueError, msgspec.MsgspecError):
        return None
    right = hmac.new(secret.encode(), head.encode(), hashlib.sha256).digest()
    return claims if header.get("alg") == "HS256" and hmac.compare_digest(given, right) else None


def unverified(token: str) -> dict[str, Any] | None:
    """The claims of a token, without a check of its signature; None if it cannot be read.

    Only for tokens that are known to be genuine.
    """
    parts = token.split(".")
    try:
        return msgspec.json.decode(_bytes(parts[1]), type=dict[str, Any]) if len(parts) == 3 else None
    except (ValueError, msgspec.MsgspecError):
        return None


def _bytes(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
