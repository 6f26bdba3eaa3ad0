"""Why: a sign-in leaves this server and comes back through the browser; only what left here may come back, and once.

What has to be remembered meanwhile (state, nonce, PKCE verifier, where to go afterwards) is sealed in a cookie of the
browser that began, so that any replica can go on and a link that somebody else sent signs nobody in.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from corral.kernel.clock import Clock
from corral.kernel.errors import Conflict, InvalidInput, Unauthenticated
from corral.service.openid.claims import Person, find, person_of
from corral.service.openid.provider import Provider
from corral.service.openid.settings import OpenIdSettings
from corral.service.seal import Sealer

MINUTES: Final = 10
"""How long a person may take at the provider."""
_OWNER: Final = "openid"
_LONGEST: Final = 4096
_MOST_SEALED: Final = _LONGEST - 128
"""So long is what a browser keeps in one cookie, less the cookie's name and attributes; longer ones it drops unsaid."""


class Going(msgspec.Struct, frozen=True):
    """What is remembered of a sign-in on its way."""

    nonce: str
    verifier: str
    redirect_uri: str
    expires_at: float
    next: dict[str, str]
    """Where whoever began wants to go on, in that route's own words."""


class Begun(msgspec.Struct, frozen=True):
    """Where to send the browser, and what it has to keep."""

    address: str
    state: str
    sealed: str


class OpenId:
    """Sign-ins with one provider."""

    def __init__(
        self, settings: OpenIdSettings, sealer: Sealer, clock: Clock, provider: Provider | None = None
    ) -> None:
        self.settings = settings.checked()
        self.provider = provider or Provider(settings, clock)
        self._sealer = sealer
        self._clock = clock

    async def close(self) -> None:
        """Let go of the provider's connections."""
        await self.provider.close()

    async def begin(self, redirect_uri: str, next: Mapping[str, str]) -> Begun:
        """A sign-in that comes back to `redirect_uri`.

        Raises Unavailable when the provider does not answer, InvalidInput for a `next` that no cookie could hold.
        """
        metadata = await self.provider.metadata()
        state, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        going = Going(secrets.token_urlsafe(24), verifier, redirect_uri, self._clock.now() + MINUTES * 60, dict(next))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": self.settings.scopes,
            "state": state,
            "nonce": going.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in metadata.authorization_endpoint else "?"
        sealed = self._sealer.seal(_OWNER, state, msgspec.json.encode(going).decode())
        if len(sealed) > _MOST_SEALED:
            message = (
                "The addresses to go on to after the sign-in are too long for a browser to keep; shorten redirect_uri, "
                "from or next."
            )
            raise InvalidInput("address-too-long", message)
        return Begun(f"{metadata.authorization_endpoint}{joint}{urlencode(query)}", state, sealed)

    async def finish(self, answer: Mapping[str, str], sealed: str) -> tuple[Person, Mapping[str, str]]:
        """Who came back with `answer` (the query of the return), and where they want to go on.

        Raises Unauthenticated, Forbidden, Unavailable.
        """
        going = self._opened(answer.get("state", ""), sealed)
        metadata = await self.provider.metadata()
        said = answer.get("iss")
        if said != self.settings.issuer and (said or metadata.authorization_response_iss_parameter_supported):
            raise Unauthenticated("wrong-issuer", "The answer came from another provider; sign in again.")
        if answer.get("error"):
            raise Unauthenticated("sign-in-refused", "The provider did not sign you in; try again.")
        code = answer.get("code", "")
        if not code or len(code) > _LONGEST:
            raise Unauthenticated("sign-in-refused", "The provider's answer has no code; sign in again.")
        tokens = await self.provider.exchange(code, going.verifier, going.redirect_uri)
        claims: dict[str, Any] = await self.provider.verified(tokens.id_token, going.nonce)
        wanted = (self.settings.user_claim, self.settings.groups_claim)
        if any(each and find(claims, each) is None for each in wanted):
            claims = {**await self.provider.user_info(tokens, str(claims["sub"])), **claims}
        return person_of(claims, self.settings), going.next

    async def leave(self, after: str) -> str:
        """Where the browser goes so that the session at the provider ends, too; `after` when that has no such page."""
        metadata = await self.provider.metadata()
        if not metadata.end_session_endpoint:
            return after
        query = urlencode({"client_id": self.settings.client_id, "post_logout_redirect_uri": after})
        return f"{metadata.end_session_endpoint}{'&' if '?' in metadata.end_session_endpoint else '?'}{query}"

    def _opened(self, state: str, sealed: str) -> Going:
        stale = Unauthenticated("stale-sign-in", "This sign-in was not begun here, or long ago; sign in again.")
        if not state or not sealed or len(state) > 100 or len(sealed) > _LONGEST:
            raise stale
        try:
            going = msgspec.json.decode(self._sealer.open(_OWNER, state, sealed), type=Going)
        except (Conflict, msgspec.MsgspecError):
            raise stale from None
        if going.expires_at < self._clock.now():
            raise stale
        return going
