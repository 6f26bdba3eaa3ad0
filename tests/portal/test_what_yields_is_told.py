"""The page of an evicted job shows the reason, the lost work, and how to resume it."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.portal.harness import Portal


def test_a_job_is_suspended_and_resumed_and_shows_its_receipt(page: Page, portal: Portal) -> None:
    job = portal.submit("asleep", devices=2)
    page.goto(f"/jobs/{job}")
    expect(page.locator("header dl [data-state=running]")).to_be_visible()
    page.get_by_role("button", name="Suspend", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("corral suspend asleep")
    dialog.get_by_role("button", name="Suspend", exact=True).click()
    expect(page.locator("header dl [data-state=waiting]")).to_be_visible()
    receipts = page.get_by_role("region", name="Had to yield")
    expect(receipts).to_contain_text("when it is resumed")
    page.get_by_role("button", name="Resume", exact=True).click()
    dialog.get_by_role("button", name="Resume", exact=True).click()
    expect(page.locator("header dl [data-state=running]")).to_be_visible()
    expect(receipts).to_contain_text("The job was suspended by")
    expect(receipts).to_contain_text("after")
    expect(receipts).to_contain_text("2 devices")


def test_a_closed_node_says_by_whom_and_why(page: Page, portal: Portal) -> None:
    portal.client.cordon("local/node2", why="new cables")
    try:
        page.goto("/nodes")
        row = page.locator("tr[data-node='local/node2']")
        expect(row).to_contain_text("cordoned by")
        expect(row).to_contain_text("new cables")
        portal.client.drain("local/node2", why="new fans")
        expect(row).to_contain_text("drained by")
    finally:
        portal.client.uncordon("local/node2")
    expect(row).not_to_contain_text("drained")
