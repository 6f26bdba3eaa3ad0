"""Tabs that a narrow screen cuts show that there are more, and the present one is in view."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.portal.harness import Portal


def test_an_arrow_stands_where_tabs_are_cut(page: Page, portal: Portal) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/queues")
    tabs = page.get_by_role("navigation", name="Queues")
    around = tabs.locator("xpath=..")
    expect(around.locator("[data-more=right]")).to_be_visible()
    expect(around.locator("[data-more=left]")).to_have_count(0)
    page.goto("/estimates")
    expect(tabs.locator("[aria-current=page]")).to_be_in_viewport(ratio=0.9)
    expect(around.locator("[data-more=left]")).to_be_visible()
    expect(around.locator("[data-more=right]")).to_have_count(0)
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(around.locator("[data-more]")).to_have_count(0)
