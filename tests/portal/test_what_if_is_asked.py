"""The page of what-if questions: choose changes, see waits and starts before and after, and the equivalent command."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE

HOUR = ', "maxDuration": "1h"'


def full(portal: Portal) -> None:
    """Four jobs on all sixteen devices for an hour, and two that wait for eight of them each."""
    for number in range(4):
        job = portal.submit(f"runs-{number}", devices=4, more=HOUR[2:])
        next(iter(portal.client.log(job, "worker", 0, follow=True)))
    for number in range(2):
        portal.submit(f"waits-{number}", replicas=2, devices=4, more=HOUR[2:])


def test_nodes_are_added_and_jobs_start_earlier(page: Page, portal: Portal, watch: Watch) -> None:
    watch.attach(page)
    full(portal)
    page.goto("/what-if")
    form = page.get_by_role("form", name="Question")
    form.get_by_label("Add nodes").fill("2")
    form.get_by_label("like").select_option("local/node1")
    expect(page.get_by_role("button", name="corral what-if --add-nodes 2 --like local/node1")).to_be_visible()
    form.get_by_role("button", name="Ask").click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("With 2 nodes like local/node1 added.")
    row = answer.get_by_role("table", name="Jobs").get_by_role("row", name="waits-0")
    expect(row).to_contain_text("earlier")
    expect(answer.get_by_role("img", name="Devices in use")).to_be_visible()
    expect(answer.get_by_role("table", name="Queues").get_by_role("row", name="default")).to_be_visible()
    expect(answer).to_contain_text("6 jobs run for as long as their maxDuration.")


def test_a_refusal_is_told_and_the_next_answer_replaces_it(page: Page, portal: Portal) -> None:
    page.goto("/what-if")
    form = page.get_by_role("form", name="Question")
    form.get_by_label("Policy").fill("nope")
    form.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no policy 'nope'")
    form.get_by_label("Policy").fill("fifo")
    form.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("region", name="Answer")).to_contain_text("With policy fifo.")
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (1440, "dark")])
def test_it_can_be_read_on_any_screen(
    browser: Browser, portal: Portal, theme: Theme, width: int, tmp_path: Path
) -> None:
    full(portal)
    context = open_context(browser, portal, width=width, theme=theme)
    page = context.new_page()
    page.goto("/what-if")
    page.get_by_label("Drain").select_option("local/node2")
    page.get_by_role("combobox", name="Queue").select_option("default")
    page.get_by_label("Limit of devices").fill("8")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("region", name="Answer")).to_contain_text("local/node2 drained")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(PALE) == []
    page.screenshot(path=tmp_path / f"{theme}.png", full_page=True)
    context.close()
