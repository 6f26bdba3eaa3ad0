"""The OpenID button appears only where a provider is configured; signing out ends both sessions."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests import warm
from tests.portal.harness import ROOT, Portal
from tests.reserved import free_port
from tests.testbeds.oidc.provider import CLIENT, SECRET, Provider

PEOPLE = {"7": {"preferred_username": "quinn", "groups": ["staff"]}, "8": {"preferred_username": "rosa", "groups": []}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server whose users sign in at a provider."""
    if not (ROOT / "corral" / "portal" / "static" / "index.html").is_file():
        pytest.skip("the portal is not built, so it is not tested: make portal")
    folder: Path = tmp_path_factory.mktemp("openid-portal")
    url = f"http://127.0.0.1:{free_port()}"
    (folder / "secret").write_text(SECRET)
    with Provider(url, PEOPLE) as provider:
        environment = {
            **os.environ,
            "XDG_CONFIG_HOME": str(folder / "config"),
            "CORRAL_OIDC_ISSUER": provider.issuer,
            "CORRAL_OIDC_CLIENT_ID": CLIENT,
            "CORRAL_OIDC_CLIENT_SECRET_FILE": str(folder / "secret"),
            "CORRAL_OIDC_GROUPS_CLAIM": "groups",
            "CORRAL_OIDC_ALLOWED_GROUPS": "staff",
            "CORRAL_OIDC_LABEL": "Sign in with Example",
            "CORRAL_TRUST_USERS": "true",
        }
        where = ["--data", str(folder / "data")]
        start = ["up", "--detach", *where, "--port", url.rpartition(":")[2], "-o", "json"]
        done = warm.corral(start, env=environment, seconds=240)
        done.check_returncode()
        yield str(json.loads(done.stdout)["url"])
        warm.corral(["down", *where], env=environment, seconds=240).check_returncode()


@pytest.fixture
def visitor(browser: Browser, site: str) -> Iterator[Page]:
    opened = browser.new_context(base_url=site, viewport={"width": 1280, "height": 800})
    opened.set_default_timeout(60_000)
    yield opened.new_page()
    opened.close()


def come_in(page: Page, who: str) -> None:
    page.get_by_role("link", name="Sign in with Example").click()
    page.get_by_label("Who are you?").fill(who)
    page.get_by_role("button", name="Continue").click()


def test_the_button_leads_to_the_provider_and_back_to_the_page_that_was_asked_for(visitor: Page, site: str) -> None:
    visitor.goto("/nodes?q=one")
    come_in(visitor, "7")
    expect(visitor).to_have_url(re.compile(r"/nodes\?q=one$"))
    expect(visitor.get_by_label("Account").first).to_contain_text("quinn")


def test_who_is_refused_reads_why(visitor: Page) -> None:
    visitor.goto("/sign-in")
    come_in(visitor, "8")
    expect(visitor.get_by_role("alert")).to_contain_text("none of the groups")
    expect(visitor.get_by_role("link", name="Sign in with Example")).to_be_visible()


def test_signing_out_asks_the_provider_to_end_its_session_too(visitor: Page, site: str) -> None:
    visitor.goto("/")
    come_in(visitor, "7")
    visitor.get_by_label("Account").first.click()
    visitor.get_by_role("button", name="Sign out").click()
    visitor.get_by_role("button", name=re.compile("sign me out", re.IGNORECASE)).click()
    expect(visitor).to_have_url(re.compile(rf"^{re.escape(site)}/sign-in"))
    visitor.goto("/")
    expect(visitor.get_by_role("heading", name="Sign in to Corral")).to_be_visible()


def test_without_a_provider_there_is_no_button(portal: Portal, stranger: Page) -> None:
    stranger.goto("/sign-in")
    expect(stranger.get_by_role("button", name="Sign in")).to_be_visible()
    expect(stranger.get_by_role("link", name=re.compile("Sign in with"))).to_have_count(0)
