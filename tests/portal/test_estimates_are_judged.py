"""The page of estimates: how many intervals held, by queue, with widths, bias and the equivalent command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE


def of_queue(queue: str, held: int, late: int, bias: float) -> dict[str, Any]:
    counts = {"given": 120, "jobs": 100, "started": 100, "waiting": 20, "notStarted": 0}
    judged = {"held": held, "early": 2, "late": late, "coverage": held / (held + 2 + late)}
    times = {"width": 5400.0, "pastWidth": 30_000.0, "bias": bias, "error": 900.0}
    return {"queue": queue} | counts | judged | times


def answered(page: Page) -> list[str]:
    """Have the server's report replaced; returns the addresses that were asked."""
    asked: list[str] = []
    queues = [of_queue("research", 82, 16, 120.0), of_queue("vision-and-language-long-name", 40, 58, -3600.0)]
    report = {"at": "2026-01-31T12:00:00.000Z", "days": 7, "queues": queues, "total": of_queue("", 122, 74, 0.0)}

    def answer(route: Route) -> None:
        asked.append(route.request.url.rpartition("/")[2])
        route.fulfill(status=200, content_type="application/json", body=json.dumps(report))

    page.route("**/api/v3/estimates*", answer)
    return asked


@pytest.fixture
def unasked(portal: Portal) -> Iterator[None]:
    """A queue of its own: other tests' jobs of this server have estimates."""
    portal.client.apply("kind: Queue\nname: unasked\n")
    yield
    portal.client.delete_configuration("queue", "unasked")


@pytest.mark.usefixtures("unasked")
def test_without_estimates_the_page_says_where_they_come_from(page: Page, watch: Watch) -> None:
    watch.attach(page)
    page.goto("/queues?queue=unasked")
    page.get_by_role("navigation", name="Queues").get_by_role("link", name="Estimates").click()
    expect(page.get_by_text("No estimate was given")).to_be_visible()
    page.get_by_role("button", name="30 days").click()
    expect(page.get_by_role("button", name="corral estimates --queue unasked --days 30")).to_be_visible()


def test_coverage_width_and_bias_are_drawn_and_told(page: Page) -> None:
    asked = answered(page)
    page.goto("/estimates")
    chart = page.get_by_role("list", name="Chart of estimates")
    expect(chart.get_by_role("img", name="research: 82 % of 100 intervals held")).to_be_visible()
    expect(chart.get_by_role("img", name="research: width 1h 30m, waits spread over 8h 20m")).to_be_visible()
    row = page.get_by_role("table", name="Estimates by queue").get_by_role("row", name="vision-and")
    expect(row).to_contain_text("1h earlier")
    expect(page.get_by_role("table").get_by_role("row", name="all")).to_contain_text("none")
    page.get_by_role("button", name="30 days").click()
    expect(page.get_by_role("button", name="30 days")).to_have_attribute("aria-pressed", "true")
    # It asks anew each 15 seconds, and when a job of this server changes.
    assert list(dict.fromkeys(asked)) == ["estimates?days=7", "estimates?days=30"]


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (390, "light"), (1440, "dark"), (1440, "light")])
def test_it_can_be_read_on_any_screen(
    browser: Browser, portal: Portal, theme: Theme, width: int, tmp_path: Path
) -> None:
    context = open_context(browser, portal, width=width, theme=theme)
    page = context.new_page()
    answered(page)
    page.goto("/estimates?queue=research")
    expect(page.get_by_role("list", name="Chart of estimates")).to_be_visible()
    tab = page.get_by_role("navigation", name="Queues").get_by_role("link", name="Estimates")
    expect(tab).to_be_in_viewport(ratio=0.95)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(PALE) == []
    page.screenshot(path=tmp_path / f"{theme}-{width}.png", full_page=True)
    context.close()
