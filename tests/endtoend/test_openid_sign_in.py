"""Sign-in at a real OpenID provider through real redirects, observed from outside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.endtoend.platform import Platform
from tests.reserved import free_port
from tests.testbeds.oidc.provider import CLIENT, SECRET, Provider

PEOPLE: dict[str, dict[str, Any]] = {
    "1001": {
        "preferred_username": "alice@corp.example",
        "email": "alice@corp.example",
        "realm_access": {"roles": ["staff"]},
    },
    "1002": {"preferred_username": "carol", "realm_access": {"roles": ["staff", "operators"]}},
    "1003": {"preferred_username": "mallory", "realm_access": {"roles": ["guests"]}},
    "1004": {"preferred_username": "local", "realm_access": {"roles": ["staff"]}},
    "1005": {"preferred_username": "dave", "realm_access": {"roles": ["staff"]}},
}


class Site(NamedTuple):
    """A server, and the provider that it trusts."""

    platform: Platform
    provider: Provider

    @property
    def url(self) -> str:
        return self.platform.url


class Browser:
    """A browser for redirects and cookies; `sub` is the user at it, as given to the provider's page."""

    def __init__(self, site: Site, sub: str) -> None:
        self._site = site
        self._who = {"sub": sub} if sub else {"deny": "1"}
        self.http = httpx2.Client(follow_redirects=False, timeout=120)
        self.seen: list[str] = []

    def go(self, path: str) -> httpx2.Response:
        """Open a path of the server and follow every redirect except those to pages of the portal."""
        address = path if path.startswith("http") else f"{self._site.url}{path}"
        for _ in range(15):
            self.seen.append(address)
            asked = self._who if urlsplit(address).path.startswith("/as/") else None
            answer = self.http.get(address, params=asked)
            if answer.status_code not in (302, 303):
                return answer
            address = str(httpx2.URL(address).join(answer.headers["location"]))
            if address.startswith(self._site.url) and "/api/" not in address:
                self.seen.append(address)
                return answer
        raise AssertionError(f"redirected for ever: {self.seen}")

    def sign_in(self, next: str = "/") -> str:
        """Sign in by the portal's button; returns the browser's final page."""
        self.go(f"/api/v3/oidc/login?next={next}")
        return self.seen[-1].removeprefix(self._site.url)

    def me(self) -> dict[str, Any]:
        """The account that the server reports."""
        answer = self.http.get(f"{self._site.url}/api/v3/me")
        return {"status": answer.status_code, **answer.json()}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("openid")
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    secret = folder / "secret"
    secret.write_text(SECRET + "\n")
    returns = [f"{base}/api/v2/authn/oidc/return"]
    with Provider(base, PEOPLE, redirects=returns) as provider:
        settings = {
            "CORRAL_OIDC_ISSUER": provider.issuer,
            "CORRAL_OIDC_CLIENT_ID": CLIENT,
            "CORRAL_OIDC_CLIENT_SECRET_FILE": str(secret),
            "CORRAL_OIDC_GROUPS_CLAIM": "realm_access.roles",
            "CORRAL_OIDC_ADMIN_GROUPS": "operators",
            "CORRAL_OIDC_ALLOWED_GROUPS": "staff",
            "CORRAL_OPENPAI_RETURN_URLS": "http://portal.example/",
            "CORRAL_TRUST_USERS": "true",
        }
        platform = Platform(folder, "--port", str(port), env=settings)
        platform.up()
        yield Site(platform, provider)
        platform.down()


def test_signing_in_at_the_provider_opens_an_account_and_leads_to_the_page_that_was_asked_for(site: Site) -> None:
    browser = Browser(site, "1001")
    assert browser.sign_in("/nodes?q=1") == "/nodes?q=1"
    assert browser.me() == {
        "status": 200, "user": "alice", "role": "user", "groups": browser.me()["groups"], "manages": []
    }  # fmt: skip
    asked = parse_qs(urlsplit(browser.seen[1]).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["state"] != asked["nonce"]
    assert asked["response_type"] == ["code"]


def test_the_second_sign_in_is_the_same_account(site: Site) -> None:
    for _ in range(2):
        browser = Browser(site, "1005")
        browser.sign_in()
        assert browser.me()["user"] == "dave"
    assert [user["name"] for user in site.platform.client.users()["items"]].count("dave") == 1


def test_a_nested_claim_makes_administrators_and_keeps_strangers_out(site: Site) -> None:
    carol = Browser(site, "1002")
    carol.sign_in()
    assert carol.me()["role"] == "admin"
    mallory = Browser(site, "1003")
    assert mallory.sign_in() == "/sign-in?refused=not-in-a-group"
    assert mallory.me()["status"] == 401
    assert "mallory" not in [user["name"] for user in site.platform.client.users()["items"]]


def test_an_account_that_is_here_already_is_not_given_to_who_has_its_name_there(site: Site) -> None:
    site.platform.client.create_user("local", password="a long password")
    browser = Browser(site, "1004")
    assert browser.sign_in() == "/sign-in?refused=account-of-another"
    assert browser.me()["status"] == 401


def test_who_says_no_at_the_provider_is_not_signed_in(site: Site) -> None:
    browser = Browser(site, "")
    assert browser.sign_in() == "/sign-in?refused=sign-in-refused"


def test_an_answer_that_another_browser_asked_for_signs_nobody_in(site: Site) -> None:
    browser, victim = Browser(site, "1001"), Browser(site, "1001")
    browser.sign_in()
    callback = next(each for each in browser.seen if "/oidc/callback" in each)
    victim.go(callback)
    assert victim.seen[-1] == f"{site.url}/sign-in?refused=stale-sign-in"
    assert victim.me()["status"] == 401
    browser.go(callback)
    assert browser.seen[-1].endswith("refused=stale-sign-in"), "an answer is good once"


def test_another_site_is_never_the_next_page(site: Site) -> None:
    for elsewhere in ("//evil.example/", "https://evil.example/", "/\\evil.example"):
        assert Browser(site, "1001").sign_in(httpx2.QueryParams({"n": elsewhere})["n"]) == "/"


def test_signing_out_ends_the_session_here_and_leads_to_the_providers_sign_out(site: Site) -> None:
    browser = Browser(site, "1001")
    browser.sign_in()
    token = browser.http.cookies["corral_session"]
    answer = browser.http.get(f"{site.url}/api/v3/oidc/logout")
    left = urlsplit(answer.headers["location"])
    assert f"{left.scheme}://{left.netloc}" == site.provider.issuer
    assert parse_qs(left.query) == {"client_id": [CLIENT], "post_logout_redirect_uri": [f"{site.url}/sign-in"]}
    assert browser.http.get(answer.headers["location"]).status_code == 200
    refused = httpx2.get(f"{site.url}/api/v3/me", headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 401


def test_a_session_that_ends_at_the_provider_ends_here_too(site: Site) -> None:
    browser = Browser(site, "1001")
    browser.sign_in()
    assert browser.me()["status"] == 200
    page = browser.http.get(f"{site.provider.issuer}/session/end")
    form = _fields(page.text)
    done = browser.http.post(f"{site.provider.issuer}/session/end/confirm", data={**form, "logout": "yes"})
    assert done.status_code in (302, 303), done.text
    assert browser.me()["status"] == 401


def test_openpais_addresses_sign_in_and_lead_to_its_portal_in_its_words(site: Site) -> None:
    told = httpx2.get(f"{site.url}/api/v2/authn/info").json()
    assert told == {"authn_type": "OIDC", "loginURI": "/api/v2/authn/oidc/login", "loginURIMethod": "get"}
    browser = Browser(site, "1001")
    browser.go("/rest-server/api/v1/authn/oidc/login")
    assert urlsplit(browser.seen[-1]).path == "/"
    assert parse_qs(urlsplit(browser.seen[-1]).query) == {
        "user": ["alice"], "admin": ["false"], "hasGitHubPAT": ["false"],
    }  # fmt: skip
    assert browser.me()["user"] == "alice"


def test_a_portal_that_an_administrator_lists_gets_a_token_that_opens_openpais_api(site: Site) -> None:
    browser = Browser(site, "1001")
    address = f"{site.url}/api/v2/authn/oidc/login?redirect_uri=http://portal.example/index.html&from=/jobs"
    last = ""
    for _ in range(12):
        asked = {"sub": "1001"} if urlsplit(address).path.startswith("/as/") else None
        address = str(httpx2.URL(address).join(browser.http.get(address, params=asked).headers["location"]))
        if address.startswith("http://portal.example/"):
            last = address
            break
    query = parse_qs(urlsplit(last).query)
    assert query["user"] == ["alice"]
    assert query["from"] == ["/jobs"]
    bearer = {"Authorization": f"Bearer {query['token'][0]}"}
    assert httpx2.get(f"{site.url}/api/v2/users/alice", headers=bearer).json()["username"] == "alice"


def test_a_token_is_sent_to_no_other_site(site: Site) -> None:
    for elsewhere in (
        "http://evil.example/",
        "http://portal.example.evil.example/",
        "//evil.example",
        "javascript:alert(1)",
    ):
        answer = httpx2.get(f"{site.url}/api/v2/authn/oidc/login", params={"redirect_uri": elsewhere})
        assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")


def test_an_answer_by_a_form_is_taken_where_the_cookie_is(site: Site) -> None:
    answer = httpx2.post(f"{site.url}/api/v2/authn/oidc/return", data={"code": "c", "state": "s", "other": "x"})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/api/v2/authn/oidc/return?code=c&state=s"


def test_doctor_asks_the_provider_too(site: Site) -> None:
    asked = site.platform.run("doctor", "--data", str(site.platform.data))
    assert f"sign-in: {site.provider.issuer} answers as an OpenID provider" in asked.stdout
    nobody = {"CORRAL_OIDC_ISSUER": f"http://127.0.0.1:{free_port()}"}
    asked = site.platform.run("doctor", "--data", str(site.platform.data), env=nobody)
    assert "sign-in: The OpenID provider cannot be used" in asked.stdout
    assert asked.returncode == 4


def test_settings_that_cannot_be_used_end_the_start_in_a_sentence(site: Site) -> None:
    insecure = {"CORRAL_OIDC_ISSUER": "http://id.example"}
    said = site.platform.refused("serve", "front", "--data", str(site.platform.folder / "none"), code=78, env=insecure)
    assert "https://" in said


def test_neither_tokens_nor_codes_are_in_the_servers_logs(site: Site) -> None:
    browser = Browser(site, "1001")
    browser.sign_in()
    callback = next(each for each in browser.seen if "/oidc/callback" in each)
    code = parse_qs(urlsplit(callback).query)["code"][0]
    logs = "".join(file.read_text() for file in (site.platform.data / "logs").iterdir())
    assert logs
    for secret in (code, browser.http.cookies["corral_session"], SECRET):
        assert secret not in logs


def _fields(page: str) -> dict[str, str]:
    """The hidden fields of a form."""

    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]+)"', page))
