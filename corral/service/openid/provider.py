"""Client of an OpenID Connect provider: discovery, code exchange, token verification.

Everything from the provider comes over TLS or is verified with its keys. Accepted are only algorithms with which the
provider alone can sign: never `none`, and never HMAC, whose key the client has too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import httpx2
import msgspec

from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError, Unauthenticated, Unavailable
from corral.service.openid.settings import OpenIdSettings, check_address

if TYPE_CHECKING:
    from joserfc.jwk import KeySet
    from joserfc.jwt import JWTClaimsRegistry

ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519",
)  # fmt: skip
_SECONDS: Final = 10.0
_BYTES: Final = 1024 * 1024
_FRESH: Final = 3600.0
"""Seconds for which the provider's metadata and keys are cached."""
_KEYS_AGAIN: Final = 30.0
"""Least seconds between two requests for its keys when a token names an unknown key."""
_LEEWAY: Final = 60
"""Seconds by which the clocks may differ."""
_LOGOUT: Final = "http://schemas.openid.net/event/backchannel-logout"


class Metadata(msgspec.Struct, frozen=True):
    """A provider's metadata (OpenID Connect Discovery 1.0, 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    id_token_signing_alg_values_supported: tuple[str, ...] = ("RS256",)
    authorization_response_iss_parameter_supported: bool = False


class Tokens(msgspec.Struct, frozen=True):
    """The tokens received for an authorization code."""

    id_token: str
    access_token: str = ""

    def __repr__(self) -> str:
        return "Tokens(…)"


class Provider:
    """Client of one provider over HTTP."""

    def __init__(
        self, settings: OpenIdSettings, clock: Clock, *, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._http = httpx2.AsyncClient(timeout=_SECONDS, follow_redirects=False, transport=transport)
        self._turn = asyncio.Lock()
        self._metadata: tuple[float, Metadata] | None = None
        self._keys: tuple[float, KeySet] | None = None

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def metadata(self) -> Metadata:
        """The provider's metadata, from the cache or from the provider.

        Raises Unavailable when it does not answer, or names another issuer.
        """
        async with self._turn:
            return await self._own_words()

    async def _own_words(self) -> Metadata:
        now = self._clock.now()
        if self._metadata is None or now - self._metadata[0] > _FRESH:
            address = self._settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
            try:
                found = msgspec.json.decode(await self._get(address), type=Metadata)
                needed = (found.authorization_endpoint, found.token_endpoint, found.jwks_uri)
                offered = (found.userinfo_endpoint, found.end_session_endpoint)
                for url in (*needed, *filter(None, offered)):
                    check_address(url, "An address of the provider")
            except (msgspec.MsgspecError, CorralError) as error:
                raise _silent(f"what it says at {address} cannot be used ({error})") from None
            if found.issuer != self._settings.issuer:
                raise _silent(f"it calls itself {found.issuer[:200]}, and oidc_issuer is {self._settings.issuer}")
            self._metadata = (now, found)
        return self._metadata[1]

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> Tokens:
        """Exchange an authorization code for tokens.

        Raises Unauthenticated when the provider refuses the code, Unavailable.
        """
        metadata = await self.metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        auth: tuple[str, str] | None = None
        known = metadata.token_endpoint_auth_methods_supported
        who, secret = self._settings.client_id, self._settings.client_secret
        if secret and ("client_secret_basic" in known or "client_secret_post" not in known):
            auth = (quote(who, safe=""), quote(secret, safe=""))  # RFC 6749, 2.3.1
        else:
            form["client_id"] = who
            if secret:
                form["client_secret"] = secret
        answer = await self._send("POST", metadata.token_endpoint, data=form, auth=auth)
        if answer.status_code != 200:
            raise Unauthenticated(
                "sign-in-refused", f"The provider refused the sign-in ({_reason(answer)}); try again."
            )
        try:
            return msgspec.json.decode(answer.content, type=Tokens)
        except msgspec.MsgspecError:
            raise Unauthenticated("sign-in-refused", "The provider gave no ID token; try again.") from None

    async def verified(self, id_token: str, nonce: str) -> dict[str, Any]:
        """Verify that an ID token is from the provider, current, for this client and this sign-in; return its claims.

        Raises Unauthenticated, Unavailable.
        """
        return await self._claims(id_token, nonce={"essential": True, "value": nonce}, exp={"essential": True})

    async def ended(self, logout_token: str) -> tuple[str, str]:
        """Verify a logout token; return the subject and the session that ended, one of which may be "".

        Raises Unauthenticated, Unavailable.
        """
        claims = await self._claims(logout_token, events={"essential": True}, sub={"essential": False})
        events, about = claims["events"], [claims.get(each) for each in ("sub", "sid")]
        if not isinstance(events, dict) or _LOGOUT not in events or "nonce" in claims or not any(about):
            raise Unauthenticated("bad-logout-token", "The provider's logout token is not one.")
        subject, session = (each if isinstance(each, str) else "" for each in about)
        return subject, session

    async def _claims(self, token: str, **expected: Any) -> dict[str, Any]:
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError, JoseError

        metadata = await self.metadata()
        algorithms = [each for each in ALGORITHMS if each in metadata.id_token_signing_alg_values_supported]
        try:
            try:
                read = jwt.decode(token, await self._key_set(), algorithms=algorithms)
            except InvalidKeyIdError:
                read = jwt.decode(token, await self._key_set(again=True), algorithms=algorithms)
            _registry(self._settings, self._clock.now(), **expected).validate(read.claims)
            _check_party(read.claims, self._settings.client_id)
        except (JoseError, ValueError) as error:
            raise Unauthenticated("bad-id-token", f"The provider's ID token is not valid ({error}).") from None
        return read.claims

    async def user_info(self, tokens: Tokens, subject: str) -> Mapping[str, Any]:
        """The claims of the provider's userinfo endpoint; empty without one, or when they have another subject.

        Raises Unavailable.
        """
        metadata = await self.metadata()
        if not metadata.userinfo_endpoint or not tokens.access_token:
            return {}
        header = {"Authorization": f"Bearer {tokens.access_token}"}
        answer = await self._send("GET", metadata.userinfo_endpoint, headers=header)
        if answer.status_code != 200:
            return {}
        try:
            found = msgspec.json.decode(answer.content, type=dict[str, Any])
        except msgspec.MsgspecError:
            return {}
        return found if found.get("sub") == subject else {}

    async def _key_set(self, *, again: bool = False) -> KeySet:
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        async with self._turn:
            metadata, now = await self._own_words(), self._clock.now()
            known = self._keys
            if known is None or now - known[0] > (_KEYS_AGAIN if again else _FRESH):
                try:
                    told = msgspec.json.decode(await self._get(metadata.jwks_uri), type=dict[str, Any])
                    keys = [each for each in told["keys"] if each.get("use", "sig") == "sig" and each["kty"] != "oct"]
                    known = self._keys = (now, KeySet.import_key_set({"keys": keys}))
                except (msgspec.MsgspecError, JoseError, LookupError, TypeError, AttributeError, ValueError) as error:
                    raise _silent(f"its keys cannot be read ({error})") from None
            return known[1]

    async def _get(self, address: str) -> bytes:
        answer = await self._send("GET", address)
        if answer.status_code != 200:
            raise _silent(f"{address} answers {answer.status_code}")
        return answer.content

    async def _send(self, method: str, address: str, **more: Any) -> httpx2.Response:
        try:
            async with self._http.stream(method, address, **more) as answer:
                taken = bytearray()
                async for piece in answer.aiter_bytes():
                    taken += piece
                    if len(taken) > _BYTES:
                        raise _silent(f"{address} answers with more than {_BYTES} bytes")
                return httpx2.Response(answer.status_code, content=bytes(taken))
        except httpx2.HTTPError as error:
            raise _silent(f"{address} does not answer ({type(error).__name__})") from None


def _registry(settings: OpenIdSettings, now: float, **expected: Any) -> JWTClaimsRegistry:
    from joserfc.jwt import JWTClaimsRegistry

    always: dict[str, Any] = {
        "iss": {"essential": True, "value": settings.issuer},
        "aud": {"essential": True, "value": settings.client_id},
        "sub": {"essential": True},
        "iat": {"essential": True},
    }
    return JWTClaimsRegistry(now=int(now), leeway=_LEEWAY, **{**always, **expected})


def _check_party(claims: Mapping[str, Any], client_id: str) -> None:
    """Check that a token with several audiences was issued to this client (OpenID Connect Core 1.0, 3.1.3.7).

    Raises ValueError.
    """
    audience, party = claims["aud"], claims.get("azp")
    if (isinstance(audience, list) and len(audience) > 1 and party is None) or party not in (None, client_id):
        raise ValueError("it was given to another client")


def _reason(answer: httpx2.Response) -> str:
    """The provider's error code for a refusal, else the HTTP status."""
    try:
        told = msgspec.json.decode(answer.content, type=dict[str, Any]).get("error")
    except msgspec.MsgspecError:
        told = None
    word = told if isinstance(told, str) else ""
    return word[:50] if word.replace("_", "").isalnum() and word.isascii() else f"status {answer.status_code}"


def _silent(why: str) -> Unavailable:
    return Unavailable("provider-unavailable", f"The OpenID provider cannot be used: {why}.", retry_after=5)
