"""Why: programs that hold a token of the OpenPAI cluster before go on with it, until somebody revokes it here.

A token is good by its hash in the store, as all are. Tokens that were exported are stored when they are imported; of
others the imported secret shows that they are genuine, and they are stored when they first come.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from corral.model.accounts import Token
from corral.service.credentials import digest, new_id
from corral.service.sessions import Sessions

SECRET_OWNER: Final = "server:openpai"
_SECRET: Final = "jwt-secret"
_ACCOUNT: Final = "account"
APPLICATION: Final = "application"
WELL_KNOWN: Final = frozenset({"pai-secret", "HelloPAI", "hello"})
"""What OpenPAI's own files have as its secret: everybody could sign with it."""
SHORTEST: Final = 12


class ImportedSecret(msgspec.Struct, frozen=True):
    """What a cluster signed its tokens with."""

    secret: str
    listed: bool = False
    """Whether its tokens were exported, so that no others are good."""
    at: float = 0.0
    """Since when it is here."""

    def __repr__(self) -> str:
        return "ImportedSecret(…)"


class OpenPaiImported(Sessions):
    """Tokens that an OpenPAI cluster made."""

    async def imported_jwt_secret(self) -> ImportedSecret | None:
        """The secret that was imported, None without one."""
        sealed = (await self.store.secrets(SECRET_OWNER)).get(_SECRET)
        if sealed is None:
            return None
        return msgspec.json.decode(self.sealer.open(SECRET_OWNER, _SECRET, sealed), type=ImportedSecret)

    async def put_imported_jwt_secret(self, imported: ImportedSecret) -> None:
        """Keep the secret of a cluster, sealed."""
        now = self.clock.now()
        text = msgspec.json.encode(msgspec.structs.replace(imported, at=now)).decode()
        await self.store.put_secret(SECRET_OWNER, _SECRET, self.sealer.seal(SECRET_OWNER, _SECRET, text), now)

    async def mark_imported(self, user: str) -> None:
        """Remember, as long as it is here, that an account is one which the cluster had."""
        owner = texts_owner(user)
        await self.store.put_secret(owner, _ACCOUNT, self.sealer.seal(owner, _ACCOUNT, user), self.clock.now())

    async def adopt_imported_token(self, token: str) -> bool:
        """Whether it is an application token of an OpenPAI cluster that was imported, and is now stored like ours."""
        if await self.store.find_token(digest(token)) is not None:
            return True
        imported = await self.imported_jwt_secret()
        if imported is None or imported.listed:
            return False
        claims = verified(token, imported.secret)
        if claims is None or not await self._is_of_the_account(claims, imported.at):
            return False
        return await self.keep_imported_token(token, claims)

    async def _is_of_the_account(self, claims: Mapping[str, Any], since: float) -> bool:
        """Whether the account of a token's name is the one that had it, and not a later one of a removed user's name."""
        name, issued = claims.get("username"), claims.get("iat")
        user = await self.store.user(name) if isinstance(name, str) else None
        if user is None:
            return False
        if user.created_at <= since or (isinstance(issued, int | float) and issued >= user.created_at):
            return True
        return _ACCOUNT in await self.store.secrets(texts_owner(user.name))

    async def keep_imported_token(self, token: str, claims: Mapping[str, Any]) -> bool:
        """Store an application token with what it says; False when it is none, or its account is not here."""
        user, issued = claims.get("username"), claims.get("iat")
        if claims.get("application") is not True or claims.get("jobSpecific") or not isinstance(user, str):
            return False
        if "exp" in claims or await self.store.user(user) is None:
            return False
        at = float(issued) if isinstance(issued, int | float) else self.clock.now()
        kept = Token(new_id(), user, "imported from OpenPAI", APPLICATION, at)
        if await self.store.add_token_once(kept, digest(token)):
            owner = texts_owner(user)
            await self.store.put_secret(owner, kept.id, self.sealer.seal(owner, kept.id, token), self.clock.now())
        return True

    async def imported_token_texts(self, user: str) -> Callable[[Token], str | None]:
        """By each token of an account its text where another cluster made it, for whoever may see it; else None."""
        owner = texts_owner(user)
        sealed = await self.store.secrets(owner)

        def text(token: Token) -> str | None:
            return self.sealer.open(owner, token.id, sealed[token.id]) if token.id in sealed else None

        return text


def texts_owner(user: str) -> str:
    """Under which owner the texts of an account's imported tokens are sealed."""
    return f"openpai-tokens:{user}"


def verified(token: str, secret: str) -> dict[str, Any] | None:
    """What a token says that was signed (HS256) with the secret; None when it was not.

    Written out, since a library would refuse secrets that it finds short, and a cluster has what it has.
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
    """What a token says, whoever signed it; None when it cannot be read. For tokens that are known to be good."""
    parts = token.split(".")
    try:
        return msgspec.json.decode(_bytes(parts[1]), type=dict[str, Any]) if len(parts) == 3 else None
    except (ValueError, msgspec.MsgspecError):
        return None


def _bytes(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
