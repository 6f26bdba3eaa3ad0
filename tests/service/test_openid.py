"""Attacks on OpenID sign-in: forged tokens, keys, issuers and states are refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey

from corral.compat.openpai.service.tenant import OpenPai
from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Forbidden, InvalidInput, Unauthenticated, Unavailable
from corral.model.accounts import Group, User
from corral.service.openid import OpenId, OpenIdSettings, Person
from corral.service.openid.claims import account_name, find, person_of
from corral.service.openid.provider import Provider
from corral.service.secret_box import SecretBox
from corral.service.service import Service

NOW = 1_700_000_000.0
ISSUER = "https://id.example"
SETTINGS = OpenIdSettings(ISSUER, "corral", "a secret: with/signs", groups_claim="groups")
KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
OTHER = RSAKey.generate_key(2048, {"kid": "one"})
METADATA: dict[str, Any] = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/auth",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
    "userinfo_endpoint": f"{ISSUER}/me",
    "id_token_signing_alg_values_supported": ["RS256", "ES256", "EdDSA", "Ed25519", "HS256", "none"],
}
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "aud": "corral",
    "sub": "1",
    "exp": NOW + 300,
    "iat": NOW,
    "nonce": "n",
    "preferred_username": "ann",
    "groups": ["staff"],
}


class Site:
    """A fake provider: its metadata, its keys, and the answer for each code."""

    def __init__(self) -> None:
        self.metadata = dict(METADATA)
        self.keys: list[Any] = [KEY]
        self.tokens: dict[str, Any] = {}
        self.info: dict[str, Any] = {}
        self.asked: list[httpx2.Request] = []
        self.status = 200

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        match request.url.path:
            case "/.well-known/openid-configuration":
                return httpx2.Response(self.status, json=self.metadata)
            case "/keys":
                return httpx2.Response(200, json={"keys": [key.as_dict(private=False) for key in self.keys]})
            case "/token":
                return httpx2.Response(200 if self.tokens else 400, json=self.tokens or {"error": "invalid_grant"})
            case "/me":
                return httpx2.Response(200, json=self.info)
        return httpx2.Response(404)

    def times(self, path: str) -> int:
        return sum(each.url.path == path for each in self.asked)


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def at() -> VirtualClock:
    return VirtualClock(NOW)


@pytest.fixture
async def provider(site: Site, at: VirtualClock) -> AsyncIterator[Provider]:
    made = Provider(SETTINGS, at, transport=httpx2.MockTransport(site))
    yield made
    await made.close()


def signed(key: Any = KEY, alg: str = "RS256", **changes: Any) -> str:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    header = {"alg": alg, **({"kid": key.kid} if key.kid else {})}
    return jwt.encode(header, claims, key, algorithms=[alg])


async def test_a_token_of_the_provider_for_this_server_and_this_sign_in_is_believed(provider: Provider) -> None:
    assert (await provider.verified(signed(), "n"))["preferred_username"] == "ann"
    several = signed(aud=["corral", "another"], azp="corral")
    assert (await provider.verified(several, "n"))["sub"] == "1"


def shared(secret: bytes) -> str:
    """A token signed with a secret that all the provider's clients have, or with a public value."""
    body = f"{part({'alg': 'HS256', 'kid': 'one'})}.{part(CLAIMS)}"
    signature = hmac.new(secret, body.encode(), hashlib.sha256).digest()
    return f"{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def part(data: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")


BAD: dict[str, Callable[[], str]] = {
    "signed by another key": lambda: signed(OTHER),
    "of another provider": lambda: signed(iss="https://evil.example"),
    "for another client": lambda: signed(aud="another"),
    "for two clients, and not told which": lambda: signed(aud=["corral", "another"]),
    "for two clients, and the other's": lambda: signed(aud=["corral", "another"], azp="another"),
    "for nobody": lambda: signed(aud=None),
    "of another sign-in": lambda: signed(nonce="m"),
    "of no sign-in": lambda: signed(nonce=None),
    "expired": lambda: signed(exp=NOW - 61),
    "without an end": lambda: signed(exp=None),
    "of the future": lambda: signed(iat=NOW + 61),
    "not yet good": lambda: signed(nbf=NOW + 61),
    "about nobody": lambda: signed(sub=None),
    "without a signature": lambda: signed().rpartition(".")[0] + ".",
    "signed with the client's own secret": lambda: shared(b"a secret: with/signs"),
    "signed with the public key as a secret": lambda: shared(KEY.as_pem(private=False)),
    "of a key that nobody has": lambda: signed(RSAKey.generate_key(2048, {"kid": "two"})),
    "cut short": lambda: signed()[:-20],
    "no token": lambda: "e30",
    "nothing": lambda: "",
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
async def test_a_token_is_not_believed_that_is(what: str, provider: Provider) -> None:
    with pytest.raises(Unauthenticated) as refused:
        await provider.verified(BAD[what](), "n")
    assert refused.value.code == "bad-id-token"


async def test_a_token_without_an_algorithm_is_not_believed(provider: Provider) -> None:
    with pytest.raises(Unauthenticated):
        await provider.verified(f"{part({'alg': 'none'})}.{part(CLAIMS)}.", "n")


@pytest.mark.parametrize(
    ("key", "alg"),
    [
        (ECKey.generate_key("P-256", {"kid": "e"}), "ES256"),
        (OKPKey.generate_key("Ed25519", {"kid": "d"}), "EdDSA"),
        (OKPKey.generate_key("Ed25519", {"kid": "f"}), "Ed25519"),
    ],
)
async def test_keys_of_other_kinds_do(key: Any, alg: str, provider: Provider, site: Site) -> None:
    site.keys.append(key)
    assert (await provider.verified(signed(key, alg), "n"))["sub"] == "1"


async def test_new_keys_are_asked_for_when_a_token_names_one_but_not_for_every_bad_token(
    provider: Provider, site: Site, at: VirtualClock
) -> None:
    await provider.verified(signed(), "n")
    renewed = RSAKey.generate_key(2048, {"kid": "new"})
    site.keys = [renewed]
    at.advance(31)
    assert (await provider.verified(signed(renewed, exp=NOW + 600), "n"))["sub"] == "1"
    before = site.times("/keys")
    for _ in range(5):
        with pytest.raises(Unauthenticated):
            await provider.verified(signed(RSAKey.generate_key(2048, {"kid": "unknown"})), "n")
    assert site.times("/keys") == before == 2


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "https://id.example/"},
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://id.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"userinfo_endpoint": "http://id.example/me"},
        {"end_session_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": 7},
    ],
)
async def test_what_a_provider_says_of_itself_must_be_of_this_issuer_and_over_tls(
    change: dict[str, Any], provider: Provider, site: Site
) -> None:
    site.metadata |= change
    with pytest.raises(Unavailable):
        await provider.metadata()


async def test_a_provider_that_does_not_answer_is_said(provider: Provider, site: Site) -> None:
    site.status = 500
    with pytest.raises(Unavailable, match="answers 500"):
        await provider.metadata()
    site.status = 200
    assert (await provider.metadata()).issuer == ISSUER, "and asked again"


@pytest.mark.parametrize(
    "claims", [{"events": None}, {"events": {}}, {"sub": None, "sid": None}, {"nonce": "n"}, {"iss": "x"}]
)
async def test_a_logout_token_must_be_one(claims: dict[str, Any], provider: Provider) -> None:
    event: dict[str, Any] = {"http://schemas.openid.net/event/backchannel-logout": {}}
    good: dict[str, Any] = {"events": event, "nonce": None, "exp": None, "sid": "s"}
    assert await provider.ended(signed(**good)) == ("1", "s")
    with pytest.raises(Unauthenticated):
        await provider.ended(signed(**{**good, **claims}))


# -- the whole sign-in -----------------------------------------------------------------------------------------------


def openid_of(provider: Provider, at: VirtualClock, settings: OpenIdSettings = SETTINGS) -> OpenId:
    return OpenId(settings, SecretBox(b"k" * 32), at, provider)


async def begun(openid: OpenId, site: Site, **claims: Any) -> tuple[dict[str, str], str]:
    """Start a sign-in at the provider; returns the callback's parameters and the browser's cookie."""
    started = await openid.begin("https://corral.example/cb", {"next": "/nodes"})
    asked = parse_qs(urlsplit(started.address).query)
    site.tokens = {"id_token": signed(nonce=asked["nonce"][0], **claims), "access_token": "t"}
    return {"state": started.state, "code": "c"}, started.sealed


async def test_a_sign_in_comes_back_with_who_it_is_and_where_to_go(
    provider: Provider, site: Site, at: VirtualClock
) -> None:
    openid = openid_of(provider, at)
    answer, sealed = await begun(openid, site, sid="at-provider", email="ann@example.org")
    person, next = await openid.finish(answer, sealed)
    assert person == Person(ISSUER, "1", "ann", ("staff",), "at-provider", "ann@example.org")
    assert next == {"next": "/nodes"}
    sent = next_request(site, "/token")
    assert parse_qs(sent.content.decode())["code_verifier"]
    assert sent.headers["authorization"].startswith("Basic "), "the secret is not in the form"


def next_request(site: Site, path: str) -> httpx2.Request:
    return next(each for each in site.asked if each.url.path == path)


async def test_a_public_client_sends_no_secret(provider: Provider, site: Site, at: VirtualClock) -> None:
    public = OpenIdSettings(ISSUER, "corral")
    openid = openid_of(Provider(public, at, transport=httpx2.MockTransport(site)), at, public)
    answer, sealed = await begun(openid, site)
    await openid.finish(answer, sealed)
    sent = next_request(site, "/token")
    assert "authorization" not in sent.headers
    assert parse_qs(sent.content.decode())["client_id"] == ["corral"]


async def test_what_did_not_begin_here_in_this_browser_and_lately_does_not_end_here(
    provider: Provider, site: Site, at: VirtualClock
) -> None:
    openid = openid_of(provider, at)
    answer, sealed = await begun(openid, site)
    _, anothers = await begun(openid, site)
    stolen = openid_of(provider, at)
    stolen._secret_box = SecretBox(b"x" * 32)
    for given, cookie, door in (
        (answer, "", openid),
        (answer, anothers, openid),
        ({**answer, "state": "x"}, sealed, openid),
        ({"code": "c"}, sealed, openid),
        (answer, sealed[:-4] + "AAAA", openid),
        (answer, sealed, stolen),
    ):
        with pytest.raises(Unauthenticated) as refused:
            await door.finish(given, cookie)
        assert refused.value.code == "stale-sign-in"
    at.advance(601)
    with pytest.raises(Unauthenticated, match="long ago"):
        await openid.finish(answer, sealed)
    assert site.times("/token") == 0


async def test_an_answer_of_another_provider_is_refused(provider: Provider, site: Site, at: VirtualClock) -> None:
    openid = openid_of(provider, at)
    answer, sealed = await begun(openid, site)
    with pytest.raises(Unauthenticated, match="another provider"):
        await openid.finish({**answer, "iss": "https://evil.example"}, sealed)
    site.metadata["authorization_response_iss_parameter_supported"] = True
    strict = openid_of(Provider(SETTINGS, at, transport=httpx2.MockTransport(site)), at)
    with pytest.raises(Unauthenticated, match="another provider"):
        await strict.finish(answer, sealed)


async def test_a_code_that_is_worth_nothing_and_a_refusal_are_said(
    provider: Provider, site: Site, at: VirtualClock
) -> None:
    openid = openid_of(provider, at)
    answer, sealed = await begun(openid, site)
    site.tokens = {}
    with pytest.raises(Unauthenticated, match="invalid_grant"):
        await openid.finish(answer, sealed)
    with pytest.raises(Unauthenticated, match="did not sign you in"):
        await openid.finish({"state": answer["state"], "error": "access_denied"}, sealed)


async def test_claims_that_are_not_in_the_token_are_asked_for_and_are_the_same_persons(
    provider: Provider, site: Site, at: VirtualClock
) -> None:
    openid = openid_of(provider, at)
    answer, sealed = await begun(openid, site, preferred_username=None, groups=None)
    site.info = {"sub": "1", "preferred_username": "ann", "groups": ["staff"]}
    assert (await openid.finish(answer, sealed))[0].groups == ("staff",)
    site.info["sub"] = "2"
    with pytest.raises(Forbidden, match="user name"):
        await openid.finish(answer, sealed)


# -- claims ----------------------------------------------------------------------------------------------------------


def test_a_claim_is_found_by_its_name_or_by_the_way_to_it() -> None:
    claims = {
        "realm_access": {"roles": ["a"]},
        "https://example.org/groups": ["b"],
        "resource_access": {"corral.web": {"roles": ["c"]}},
    }
    assert find(claims, "realm_access.roles") == ["a"]
    assert find(claims, "https://example.org/groups") == ["b"]
    assert find(claims, "resource_access.corral.web.roles") == ["c"]
    assert find(claims, "realm_access.other") is None
    assert find(claims, "realm_access.roles.deeper") is None


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("ann", "ann"),
        ("Ann.Lee@corp.example", "Ann.Lee"),
        ("ann lee", "ann-lee"),
        ("дмитрий", ""),
        ("..", ""),
        ("@x", ""),
        ("a" * 90, "a" * 63),
    ],
)
def test_a_name_becomes_one_that_accounts_can_have(told: str, name: str) -> None:
    assert account_name(told) == name


@pytest.mark.parametrize(
    ("told", "groups"),
    [
        (["b", "a", 7, ""], ("a", "b")),
        ("a b", ("a", "b")),
        ("a,b", ("a", "b")),
        ("", ()),
        ([], ()),
        ({"a": 1}, ()),
        (None, ()),
    ],
)
def test_groups_are_read_however_they_are_told(told: Any, groups: Any) -> None:
    assert person_of({**CLAIMS, "groups": told}, SETTINGS).groups == groups


def test_of_groups_nothing_is_taken_unless_a_claim_is_named() -> None:
    assert person_of({**CLAIMS, "groups": ["a"]}, OpenIdSettings(ISSUER, "corral")).groups is None


@pytest.mark.parametrize(
    "settings",
    [
        OpenIdSettings("http://id.example", "corral"),
        OpenIdSettings("ftp://id.example", "corral"),
        OpenIdSettings("https://user@id.example", "corral"),
        OpenIdSettings("", "corral"),
        OpenIdSettings(ISSUER, ""),
        OpenIdSettings(ISSUER, "corral", scopes="profile"),
        OpenIdSettings(ISSUER, "corral", admin_groups=("boss",)),
    ],
)
def test_settings_that_nobody_should_sign_in_by_are_refused(settings: OpenIdSettings) -> None:
    with pytest.raises(InvalidInput):
        settings.checked()


# -- accounts --------------------------------------------------------------------------------------------------------


def person(name: str = "zoe", subject: str = "s-1", **more: Any) -> Person:
    return Person(ISSUER, subject, name, **more)


async def test_a_person_keeps_the_account_whatever_their_name_becomes(service: Service) -> None:
    assert (await service.openid_sessions.sign_in(person("zoe"), SETTINGS)).user == "zoe"
    assert (await service.openid_sessions.sign_in(person("zoe-married"), SETTINGS)).user == "zoe"
    with pytest.raises(Exception, match="not linked with you"):
        await service.openid_sessions.sign_in(person("zoe", "s-2"), SETTINGS)


async def test_an_account_that_was_imported_for_a_name_is_given_to_the_first_who_has_it(service: Service) -> None:
    await service.openid_sessions.expect(ISSUER, "ann")
    assert (await service.openid_sessions.sign_in(person("ann"), SETTINGS)).user == "ann"
    with pytest.raises(Exception, match="not linked with you"):
        await service.openid_sessions.sign_in(person("ann", "s-2"), SETTINGS)


async def test_no_subject_is_taken_for_the_name_that_an_account_waits_for(service: Service) -> None:
    await service.context.store.add_user(User("boss", "admin"))
    await service.openid_sessions.expect(ISSUER, "boss")
    with pytest.raises(Forbidden, match="cannot be told from others"):
        await service.openid_sessions.sign_in(person("eve", "name:boss"), SETTINGS)


async def test_linking_by_name_gives_away_no_administrator_and_no_account_with_a_password(service: Service) -> None:
    by_name = OpenIdSettings(ISSUER, "corral", link_by_name=True)
    assert (await service.openid_sessions.sign_in(person("ann"), by_name)).user == "ann"
    await service.context.store.add_user(User("pat"), "a hash")
    for name in ("root", "pat"):
        with pytest.raises(Exception, match="not linked with you"):
            await service.openid_sessions.sign_in(person(name, f"s-{name}"), by_name)


async def test_groups_and_administrators_follow_the_claim_at_each_sign_in(service: Service) -> None:
    for group in (Group("research", external_name="ext-1"), Group("staff"), Group("ext-1", external_name="else")):
        await service.context.store.put_group(group)
    settings = OpenIdSettings(ISSUER, "corral", groups_claim="groups", admin_groups=("boss",))
    first = await service.openid_sessions.sign_in(person(groups=("boss", "ext-1", "staff", "unknown")), settings)
    assert first.role == "admin"
    zoe = await service.context.store.user("zoe")
    assert zoe is not None
    assert zoe.groups == ("research", "staff")
    actor = await service.authentication.authenticate(first.token)
    assert actor.is_admin
    await service.openid_sessions.sign_in(person(groups=("staff",)), settings)
    assert not (await service.authentication.authenticate(first.token)).is_admin, (
        "what was known of the earlier token is forgotten"
    )
    await service.openid_sessions.sign_in(person(groups=None), settings)
    zoe = await service.context.store.user("zoe")
    assert zoe is not None
    assert zoe.groups == ("staff",), "who says nothing changes nothing"


async def test_a_session_that_is_over_there_ends_what_began_in_it(service: Service) -> None:
    first = await service.openid_sessions.sign_in(person(session="one"), SETTINGS)
    second = await service.openid_sessions.sign_in(person(session="two"), SETTINGS)
    assert await service.openid_sessions.end(ISSUER, "", "one") == 1
    with pytest.raises(Unauthenticated):
        await service.authentication.authenticate(first.token)
    await service.authentication.authenticate(second.token)
    assert await service.openid_sessions.end("https://evil.example", "s-1", "") == 0
    assert await service.openid_sessions.end(ISSUER, "s-1", "") == 2
    with pytest.raises(Unauthenticated):
        await service.authentication.authenticate(second.token)


async def test_what_another_site_was_given_ends_with_the_session_too(service: Service, openpai: OpenPai) -> None:
    first = await service.openid_sessions.sign_in(person(session="one"), SETTINGS)
    given = await openpai.tokens.sign_in_token(await service.authentication.authenticate(first.token))
    await service.authentication.authenticate(given)
    assert await service.openid_sessions.end(ISSUER, "", "one") == 2
    for token in (first.token, given):
        with pytest.raises(Unauthenticated):
            await service.authentication.authenticate(token)


async def test_an_account_that_was_removed_is_forgotten_with_its_link(service: Service) -> None:
    await service.openid_sessions.sign_in(person("zoe"), SETTINGS)
    await service.context.store.remove_user("zoe")
    await service.context.store.add_user(User("zoe"), "another person's")
    with pytest.raises(Exception, match="not linked with you"):
        await service.openid_sessions.sign_in(person("zoe"), SETTINGS)


async def test_a_locked_account_stays_locked(service: Service) -> None:
    await service.openid_sessions.sign_in(person("zoe"), SETTINGS)
    await service.context.store.change_user("zoe", disabled=True)
    with pytest.raises(Unauthenticated, match="disabled"):
        await service.openid_sessions.sign_in(person("zoe"), SETTINGS)
