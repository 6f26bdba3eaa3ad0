"""A session that ends under an open page is told in a window, and what was typed on the page is not lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from corral.client import Client
from tests.portal.axe import findings
from tests.portal.harness import Portal, Watch, open_context


@pytest.fixture
def pat(browser: Browser, portal: Portal, watch: Watch) -> Iterator[tuple[Client, Page]]:
    """A client of an account with a password, and a page in a window of the same session."""
    portal.client.create_user("pat", password="correct horse")
    with Client(portal.url) as client, open_context(browser, portal, width=390) as context:
        client.login(user="pat", password="correct horse")
        context.add_cookies([{"name": "corral_session", "value": client.token, "url": portal.url}])
        context.on("page", watch.attach)
        yield client, context.new_page()
    portal.clear()
    portal.client.delete_user("pat")


def test_a_form_that_was_filled_is_sent_after_a_sign_in_on_the_same_page(pat: tuple[Client, Page]) -> None:
    client, page = pat
    page.goto("/submit")
    page.get_by_label("Name", exact=True).fill("kept")
    client.logout()
    page.get_by_role("button", name="Submit", exact=True).press("Enter")
    window = page.get_by_role("dialog", name="Your session has ended")
    expect(window).to_contain_text("Sign in again as pat; what you typed on this page is kept.")
    expect(window.get_by_label("Password")).to_be_focused()
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.type("wrong horse")
    page.keyboard.press("Enter")
    expect(window.get_by_role("alert")).to_be_visible()
    window.get_by_label("Password").fill("correct horse")
    page.keyboard.press("Enter")
    expect(window).to_have_count(0)
    expect(page.get_by_label("Name", exact=True)).to_have_value("kept")
    page.get_by_role("button", name="Submit", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="kept")).to_be_visible()


def test_events_arrive_again_after_a_sign_in_in_another_tab(pat: tuple[Client, Page], portal: Portal) -> None:
    client, page = pat
    page.goto("/")
    expect(page.get_by_text("No job has been submitted yet")).to_be_visible()
    client.logout()
    window = page.get_by_role("dialog", name="Your session has ended")
    expect(window).to_be_visible()
    other = page.context.new_page()
    other.goto("/sign-in")
    other.get_by_label("User").fill("pat")
    other.get_by_label("Password").fill("correct horse")
    other.get_by_role("button", name="Sign in").click()
    expect(other.get_by_role("region", name="Cluster")).to_be_visible()
    window.get_by_role("button", name="Go on").click()
    expect(window).to_have_count(0)
    job = portal.submit("later")
    expect(page.locator(f"tr[data-job='{job}']")).to_be_visible()


def test_another_person_who_signs_in_sees_nothing_of_the_page(pat: tuple[Client, Page], portal: Portal) -> None:
    client, page = pat
    page.goto("/submit")
    page.get_by_label("Name", exact=True).fill("of-pat")
    client.logout()
    window = page.get_by_role("dialog", name="Your session has ended")
    expect(window).to_be_visible()
    page.context.add_cookies([{"name": "corral_session", "value": portal.client.token, "url": portal.url}])
    window.get_by_role("button", name="Go on").click()
    expect(page.get_by_label("Account").first).to_contain_text("root")
    expect(page.get_by_role("region", name="Cluster")).to_be_visible()
    assert "of-pat" not in page.content()
