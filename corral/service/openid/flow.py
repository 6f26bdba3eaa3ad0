"""The OpenID Connect sign-in: authorization code flow with PKCE, and sign-out at the provider.

The state of a sign-in (state, nonce, PKCE verifier, where to go afterwards) is sealed in a cookie of the browser that
began it. So any replica can finish it, and a link from somebody else signs nobody in.
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
from corral.service.secret_box import SecretBox

MINUTES: Final = 10
"""Minutes that a person may take at the provider."""
_OWNER: Final = "openid"
_LONGEST: Final = 4096
_MOST_SEALED: Final = _LONGEST - 128
"""Most characters of the sealed cookie: browsers silently drop one above 4096, name and attributes included."""


class Going(msgspec.Struct, frozen=True):
    """The state of a sign-in under way."""

    nonce: str
    verifier: str
    redirect_uri: str
    expires_at: float
    next: dict[str, str]
    """Where to go afterwards, in the format of the route that began the sign-in."""


class Begun(msgspec.Struct, frozen=True):
    """The address to send the browser to, and the state for its cookie."""

    address: str
    state: str
    sealed: str


class OpenId:
    """Sign-ins with one provider."""

    def __init__(
        self, settings: OpenIdSettings, secret_box: SecretBox, clock: Clock, provider: Provider | None = None
    ) -> None:
        self.settings = settings.checked()
        self.provider = provider or Provider(settings, clock)
        self._secret_box = secret_box
        self._clock = clock

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self.provider.close()

    async def begin(self, redirect_uri: str, next: Mapping[str, str]) -> Begun:
        """Begin a sign-in that returns to `redirect_uri`.

        Raises Unavailable when the provider does not answer, InvalidInput for a `next` that does not fit a cookie.
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
        sealed = self._secret_box.seal(_OWNER, state, msgspec.json.encode(going).decode())
        if len(sealed) > _MOST_SEALED:
            message = (
                "The addresses to go on to after the sign-in are too long for a browser to keep; shorten redirect_uri, "
                "from or next."
            )
            raise InvalidInput("address-too-long", message)
        return Begun(f"{metadata.authorization_endpoint}{joint}{urlencode(query)}", state, sealed)

    async def finish(self, answer: Mapping[str, str], sealed: str) -> tuple[Person, Mapping[str, str]]:
        """Finish a sign-in; return the person and the `next` given at its beginning.

        `answer` is the query of the return. Raises Unauthenticated, Forbidden, Unavailable.
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
        """The address that also ends the session at the provider; `after` when the provider has no such page."""
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
            going = msgspec.json.decode(self._secret_box.open(_OWNER, state, sealed), type=Going)
        except (Conflict, msgspec.MsgspecError):
            raise stale from None
        if going.expires_at < self._clock.now():
            raise stale
        return going
