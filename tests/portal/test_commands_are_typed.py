"""The command palette leads to pages, jobs, queues and nodes, and acts on a job, by the keyboard alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE


def _open(page: Page) -> None:
    expect(page.get_by_role("button", name="Go to, or do").first).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)  # a window that is open keeps its keys
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Command")).to_be_focused()


def _type(page: Page, text: str, first: str | re.Pattern[str]) -> None:
    """Type into the palette, and wait until its chosen row has a text."""
    page.keyboard.type(text)
    expect(page.get_by_role("dialog").get_by_role("option", selected=True)).to_have_text(first)


def test_pages_jobs_queues_and_nodes_are_reached_without_the_mouse(page: Page, portal: Portal) -> None:
    job = portal.submit("find-me")
    page.goto("/usage")
    expect(page.get_by_role("heading", name="Usage")).to_have_count(1)
    _open(page)
    _type(page, "waiting l", "Waiting list")
    page.keyboard.press("Enter")
    page.wait_for_url("**/line")
    _open(page)
    _type(page, "find-m", re.compile("find-me"))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{job}")
    _open(page)
    _type(page, "default", "default")
    page.keyboard.press("Enter")
    page.wait_for_url("**/queues?queue=default")
    _open(page)
    _type(page, "local/node2", "local/node2")
    page.keyboard.press("Enter")
    page.wait_for_url("**/nodes?node=local%2Fnode2")


def test_a_verb_finds_the_jobs_that_it_suits_and_asks_before_it_acts(page: Page, portal: Portal) -> None:
    other, over, job = portal.submit("keep-it"), portal.submit("ended-it", "true"), portal.submit("end-it")
    portal.client.wait(over, timeout=240)
    page.goto("/nodes")
    _open(page)
    _type(page, "stop", re.compile("^stop …"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("combobox", name="Command")).to_have_value("stop ")
    expect(page.get_by_role("dialog").get_by_role("option")).to_have_count(2)  # nothing to stop in the one that is over
    _type(page, "end-", re.compile("^stop end-it"))
    expect(page.get_by_role("dialog").get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(
        page.get_by_role("dialog", name="Stop end-it?").get_by_role("button", name="Stop", exact=True)
    ).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert portal.client.wait(job, timeout=240)["state"] == "stopped"
    assert portal.client.job(other)["state"] in {"waiting", "starting", "running"}
    page.wait_for_url("**/nodes")


def test_the_job_that_is_open_comes_first_and_is_explained_and_cloned(page: Page, portal: Portal) -> None:
    job = portal.submit("looked-at", devices=1)
    page.goto(f"/jobs/{job}?tab=events")
    expect(page.get_by_role("heading", name="looked-at")).to_be_visible()
    _open(page)
    expect(page.get_by_role("group", name="This job, looked-at").get_by_role("option").first).to_be_visible()
    page.keyboard.type("clone ")
    expect(page.get_by_role("dialog").get_by_role("option", selected=True)).to_have_text(re.compile("^clone looked-at"))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/submit?from={job}")
    expect(page.get_by_label("Name", exact=True)).to_have_value("looked-at")
    page.get_by_label("Name", exact=True).press("Control+k")
    _type(page, "explain looked", re.compile("^explain looked-at"))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{job}")


def test_what_is_called_by_no_name_says_so_and_escape_leaves_the_page_as_it_was(page: Page, portal: Portal) -> None:
    page.goto("/nodes?q=node1")
    expect(page.get_by_role("searchbox")).to_have_value("node1")
    _open(page)
    page.keyboard.type("nowhere-at-all")
    expect(page.get_by_text("Nothing is called so.")).to_be_visible()
    expect(page.get_by_role("dialog").get_by_role("status")).to_have_text("0 found")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+k")  # a window that is open keeps its keys
    expect(page.get_by_role("dialog")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/nodes\?q=node1$"))


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1440, "light")])
def test_the_palette_is_legible_and_named_and_fits(
    browser: Browser, portal: Portal, watch: Watch, width: int, theme: Theme
) -> None:
    job = portal.submit("a-rather-long-name-of-a-job-that-goes-on-and-on-and-on")
    with open_context(browser, portal, width=width, theme=theme) as context:
        context.on("page", watch.attach)
        page = context.new_page()
        page.goto(f"/jobs/{job}")
        page.get_by_label("Account").first.click()
        page.get_by_role("button", name="Go to, or do").last.click()
        expect(page.get_by_role("dialog").get_by_role("option").nth(20)).to_be_attached()
        assert page.evaluate(PALE) == []
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        active = page.get_by_role("combobox").get_attribute("aria-activedescendant")
        expect(page.locator(f"[id='{active}']")).to_have_attribute("aria-selected", "true")
