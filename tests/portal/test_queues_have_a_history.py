"""The page of a queue has its weeks: how long jobs waited, and what it used, borrowed and lent."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.portal.harness import Portal


def test_a_queue_tells_its_waits_and_use_by_week(page: Page, portal: Portal) -> None:
    for number in range(3):
        portal.client.wait(portal.submit(f"counted-{number}", "true", devices=1), timeout=240)
    told = portal.client.queue_history("default")
    assert told["weeks"][0]["started"] + told["weeks"][1]["started"] >= 3, "a week may have begun meanwhile"
    page.goto("/queues?queue=default")
    rows = page.get_by_role("table", name="By week").locator("tr[data-week]")
    expect(rows).to_have_count(8)
    week = next(each for each in told["weeks"] if each["started"])
    row = page.locator(f"tr[data-week='{week['week']}']")
    expect(row.locator("td").nth(1)).to_have_text(str(week["started"]))
    begins = re.compile(f"{week['week']}: {week['started']} started: half waited at most ")
    expect(row.get_by_role("img").first).to_have_attribute("aria-label", begins)
    expect(page.get_by_role("button", name="corral queues default --history")).to_be_visible()
    assert rows.evaluate_all("rows => rows.map(row => row.dataset.week)") == [each["week"] for each in told["weeks"]]
