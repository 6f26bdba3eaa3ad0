"""Configuration documents in the portal: present text, history and rollback."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from corral.kernel.errors import NotFound
from tests.portal.harness import Portal, press_pair


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


def test_a_deleted_document_is_found_and_brought_back(page: Page, vision: Portal) -> None:
    last = vision.client.configuration("queue", "vision")["revision"]
    vision.client.delete_configuration("queue", "vision", note="by mistake")
    page.goto("/")
    page.get_by_role("link", name="Configuration").click()
    expect(page.get_by_role("link", name="Cluster local")).to_be_visible()
    expect(page.get_by_role("link", name="Queue vision")).to_have_count(0)
    page.get_by_role("button", name="Show deleted documents").click()
    gone = page.get_by_role("region", name="Deleted documents")
    gone.get_by_role("link", name="Queue vision").click()
    expect(page).to_have_url(re.compile(r"deleted=yes"))
    expect(page.get_by_text("This revision deleted the document.")).to_be_visible()
    page.get_by_role("button", name=f"Roll back to revision {last}").click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(gone.get_by_role("link", name="Queue vision")).to_have_count(0)
    expect(page.get_by_role("link", name="Queue vision")).to_have_count(1)
    assert vision.client.configuration("queue", "vision")["document"]["limit"] == {"devices": "8"}
    page.get_by_role("button", name="Hide deleted documents").click()
    expect(gone).to_have_count(0)


def test_what_somebody_else_applies_appears_without_a_reload(page: Page, vision: Portal) -> None:
    page.goto("/configuration?document=Queue/vision")
    expect(page.locator("pre")).to_contain_text("devices: 8")
    vision.client.apply(_queue(9), note="at a terminal")
    expect(page.get_by_role("cell", name="at a terminal", exact=True)).to_be_visible()
    expect(page.locator("pre")).to_contain_text("devices: 9")


def test_the_keyboard_goes_there_and_through_the_documents(page: Page, vision: Portal) -> None:
    page.goto("/")
    expect(page.get_by_role("link", name="Configuration")).to_be_visible()
    press_pair(page, "gc")
    expect(page).to_have_title("Configuration · Corral")
    expect(page.get_by_role("link", name="Queue vision")).to_be_visible()
    documents = [f"{each['kind']}%2F{each['name']}" for each in vision.client.documents()["items"]]
    for document in documents[: documents.index("Queue%2Fvision") + 1]:  # other tests may have left some
        page.keyboard.press("j")
        expect(page).to_have_url(f"{vision.url}/configuration?document={document}")
    expect(page.locator("pre")).to_contain_text("name: vision")
