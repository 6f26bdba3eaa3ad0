"""A job's page shows until when it waits, and changes with which it could start now."""

from __future__ import annotations

import re
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.portal.harness import Portal, Theme, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE

HOUR = r"(1h|5\dm( \d+s)?)"
"""An hour, some time after its begin."""


def waiting(portal: Portal) -> tuple[str, str]:
    """A job that ends within the hour on three of the four nodes, and one that needs two of these."""
    holds = portal.submit("holds", replicas=3, devices=4, more='"maxDuration": "1h", "preemptible": false')
    portal.begun(holds, tasks=3)
    return holds, portal.submit("patient", replicas=2, devices=4)


def test_a_waiting_job_says_when_it_starts_and_what_would_start_it_now(page: Page, portal: Portal) -> None:
    _, patient = waiting(portal)
    page.goto(f"/jobs/{patient}")
    why = page.get_by_role("region", name="Why it waits")
    start = why.locator("[data-estimate=at-latest]")
    expect(start).to_contain_text("Starts at the latest in")
    expect(start.locator("time")).to_have_text(re.compile(f"^{HOUR}$"))
    expect(start).to_contain_text("Assumes that every running job uses its full maxDuration")
    start.get_by_role("link", name="holds").click()
    expect(page.get_by_role("heading", name="holds")).to_be_visible()
    page.go_back()
    changes = why.get_by_role("list", name="What would start it now").get_by_role("listitem")
    expect(changes.filter(has_text="roles.worker.replicas: 2 → 1")).to_contain_text(
        "It would start now with 1 task instead of 2."
    )


def test_the_page_of_a_waiting_job_can_be_read_by_everyone(browser: Browser, portal: Portal, tmp_path: Path) -> None:
    _, patient = waiting(portal)
    windows: tuple[tuple[Theme, int], ...] = (("light", 1280), ("dark", 390))
    for theme, width in windows:
        context = open_context(browser, portal, width=width, theme=theme)
        page = context.new_page()
        page.goto(f"/jobs/{patient}")
        expect(page.get_by_role("list", name="What would start it now")).to_be_visible()
        page.screenshot(path=tmp_path / f"{theme}.png")
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate(PALE) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        context.close()


def test_the_waiting_list_shows_starts_of_the_same_forecast(page: Page, portal: Portal) -> None:
    _, patient = waiting(portal)
    page.goto("/line")
    row = page.locator(f"[data-waiting='{patient}']")
    expect(row.locator("time").last).to_have_text(re.compile(f"^at most {HOUR}$"))
    forecast = page.locator("[data-forecast]")
    expect(forecast).to_contain_text(re.compile(r"\d+ courses?"))  # one where no job has ended
    begun, shown, why = time.monotonic(), "", page.get_by_role("region", name="Why it waits")
    while not shown or why.locator("[data-forecast]").get_attribute("data-forecast") != shown:
        assert time.monotonic() < begun + 200, "the pages show different forecasts"  # each is made anew after a minute
        page.goto("/line")
        shown = forecast.get_attribute("data-forecast") or ""
        page.goto(f"/jobs/{patient}")
