"""Configuration documents in the portal: present text, history and rollback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from corral.kernel.errors import NotFound
from tests.portal.harness import Portal


def _queue(devices: int) -> str:
    return f"kind: Queue\nname: vision\nlimit: {{devices: {devices}}}\n"


@pytest.fixture
def vision(portal: Portal) -> Iterator[Portal]:
    """A queue with three more revisions."""
    for devices, note in ((4, "the first share"), (6, "two more"), (8, "")):
        portal.client.apply(_queue(devices), note=note)
    yield portal
    try:
        portal.client.delete_configuration("queue", "vision")
    except NotFound:
        return


def test_revisions_are_shown_compared_and_rolled_back(page: Page, vision: Portal) -> None:
    page.goto("/")
    page.get_by_role("link", name="Configuration").click()
    page.get_by_role("link", name="Queue vision").click()
    expect(page.locator("pre")).to_contain_text("devices: 8")
    last = vision.client.configuration("queue", "vision")["revision"]
    page.get_by_role("button", name=f"Show revision {last - 1}").click()
    expect(page.locator("pre")).to_contain_text("devices: 6")
    page.get_by_role("tab", name="Changes").click()
    expect(page.locator("[data-diff=gone]")).to_contain_text("devices: 4")
    expect(page.locator("[data-diff=came]")).to_contain_text("devices: 6")
    address = page.url
    page.goto(address)
    expect(page.locator("[data-diff=came]")).to_contain_text("devices: 6")
    page.get_by_role("button", name=f"Roll back to revision {last - 2}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("[data-diff=came]")).to_contain_text("devices: 4")
    expect(dialog).to_contain_text(f"corral rollback queue/vision {last - 2}")
    dialog.get_by_role("button", name="Roll back").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("cell", name=f"rolled back to revision {last - 2}", exact=True)).to_be_visible()
    assert vision.client.configuration("queue", "vision")["document"]["limit"] == {"devices": "4"}


def test_what_somebody_else_applies_appears_without_a_reload(page: Page, vision: Portal) -> None:
    page.goto("/configuration?document=Queue/vision")
    expect(page.locator("pre")).to_contain_text("devices: 8")
    vision.client.apply(_queue(9), note="at a terminal")
    expect(page.get_by_role("cell", name="at a terminal", exact=True)).to_be_visible()
    expect(page.locator("pre")).to_contain_text("devices: 9")


def test_the_keyboard_goes_there_and_through_the_documents(page: Page, vision: Portal) -> None:
    page.goto("/")
    expect(page.get_by_role("link", name="Configuration")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(page).to_have_title("Configuration · Corral")
    expect(page.get_by_role("link", name="Queue vision")).to_be_visible()
    page.keyboard.press("j")
    expect(page).to_have_url(f"{vision.url}/configuration?document=Cluster%2Flocal")
    page.keyboard.press("j")
    expect(page.locator("pre")).to_contain_text("name: vision")
