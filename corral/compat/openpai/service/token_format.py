"""Accept the JWTs of OpenPAI's clients as bearer tokens."""

from __future__ import annotations

from corral.compat.openpai.service import jwt
from corral.compat.openpai.service.imported_tokens import ImportedTokens
from corral.service.context import Context


class OpenPaiTokenFormat:
    """The token format of OpenPAI; see `TokenFormat`."""

    sign_in_kind = jwt.LOGIN

    def __init__(self, context: Context, imported_tokens: ImportedTokens) -> None:
        self._context = context
        self._imported_tokens = imported_tokens

    def has_form(self, token: str) -> bool:
        """Whether the text is a JWT."""
        return jwt.is_jwt(token)

    async def accepts(self, token: str) -> bool:
        """Whether this server signed the token, or an imported cluster did."""
        return jwt.is_ours(self._context.key, token) or await self._imported_tokens.adopt(token)
