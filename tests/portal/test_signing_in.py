"""A link or a password signs in to the portal once, and the address keeps no trace of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.portal.harness import Portal


@pytest.fixture(autouse=True)
def _accounts(portal: Portal) -> Iterator[None]:
    """The accounts that a test makes are deleted after it."""
    before = {user["name"] for user in portal.client.users()["items"]}
    yield
    for user in portal.client.users()["items"]:
        if user["name"] not in before:
            portal.client.delete_user(user["name"])


def link_of(portal: Portal, name: str, **how: str) -> str:
    portal.client.create_user(name, **how)
    return str(portal.client.login_link(name)["link"]).rpartition("#link=")[2]


def test_a_one_time_link_signs_in_and_leaves_the_address(portal: Portal, stranger: Page) -> None:
    link = link_of(portal, "lin")
    stranger.goto(f"/sign-in#link={link}")
    expect(stranger.get_by_role("region", name="Cluster")).to_be_visible()
    expect(stranger.get_by_label("Account").first).to_contain_text("lin")
    assert link not in stranger.url
    assert link not in stranger.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")


def test_a_used_link_is_refused_in_a_sentence(portal: Portal, stranger: Page) -> None:
    link = link_of(portal, "mia")
    stranger.goto(f"/sign-in#link={link}")
    expect(stranger.get_by_role("region", name="Cluster")).to_be_visible()
    stranger.context.clear_cookies()
    stranger.goto("about:blank")
    stranger.goto(f"/sign-in#link={link}")
    expect(stranger.get_by_role("alert")).to_contain_text(re.compile("link", re.IGNORECASE))


def test_a_password_signs_in_and_leads_back_to_the_page_that_was_asked_for(portal: Portal, stranger: Page) -> None:
    portal.client.create_user("nora", password="correct horse")
    stranger.goto("/nodes?q=rack1")
    expect(stranger.get_by_role("heading", name="Sign in to Corral")).to_be_visible()
    stranger.get_by_label("User").fill("nora")
    stranger.get_by_label("Password").fill("wrong horse")
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_role("alert")).to_be_visible()
    stranger.get_by_label("Password").fill("correct horse")
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger).to_have_url(re.compile(r"/nodes\?q=rack1$"))
    expect(stranger.locator("tr[data-node]")).to_have_count(2)


def test_signing_out_ends_the_session(portal: Portal, stranger: Page) -> None:
    stranger.goto(f"/sign-in#link={link_of(portal, 'otto')}")
    stranger.get_by_label("Account").first.click()
    stranger.get_by_role("button", name="Sign out").click()
    expect(stranger.get_by_role("heading", name="Sign in to Corral")).to_be_visible()
    stranger.goto("/")
    expect(stranger.get_by_role("heading", name="Sign in to Corral")).to_be_visible()


def test_another_site_is_never_the_next_page(portal: Portal, stranger: Page) -> None:
    stranger.goto(f"/sign-in?next=//example.org/#link={link_of(portal, 'pia')}")
    expect(stranger.get_by_role("region", name="Cluster")).to_be_visible()
    assert stranger.url == f"{portal.url}/"


def test_a_new_password_is_set_on_the_account_page_and_leads_to_the_sign_in(portal: Portal, stranger: Page) -> None:
    stranger.goto(f"/sign-in#link={link_of(portal, 'quin')}")
    expect(stranger.get_by_role("region", name="Cluster")).to_be_visible()
    stranger.goto("/account")
    expect(stranger.get_by_text("Storages with a folder for each user give you quin.")).to_be_visible()
    stranger.get_by_label("New password", exact=True).fill("correct horse")
    stranger.get_by_label("New password again").fill("correct horse")
    stranger.get_by_label("New password again").press("Enter")
    expect(stranger.get_by_role("status")).to_contain_text("All sign-ins and API tokens have ended")
    stranger.get_by_label("User").fill("quin")
    stranger.get_by_label("Password").fill("correct horse")
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_role("button", name="Change the password")).to_be_visible()
