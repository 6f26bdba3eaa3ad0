"""What a program reports of its work stands with its job, as a bar and in numbers."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.portal.harness import Portal, Theme, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE

REPORTS = (
    "python3 -c 'import corral; corral.report(500, steps=2000, loss=0.03125, throughput=1234.5, gradient_noise=870)'"
    " && sleep 1000"
)


def test_a_job_shows_how_far_its_program_says_that_it_is(browser: Browser, portal: Portal, tmp_path: Path) -> None:
    document = {"name": "digits", "report": True, "roles": {"main": {"command": REPORTS}}}
    job = portal.client.submit(json.dumps(document))["id"]
    windows: tuple[tuple[Theme, int], ...] = (("light", 1280), ("dark", 390))
    for theme, width in windows:
        context = open_context(browser, portal, width=width, theme=theme)
        page = context.new_page()
        page.goto(f"/jobs/{job}")
        expect(page.get_by_role("progressbar", name="Work done")).to_have_attribute("aria-valuenow", "25")
        expect(page.get_by_text("25 %")).to_be_visible()
        expect(page.get_by_text("step 500 of 2,000 · loss 0.03125 · 1,235/s · gradient noise 870 ·")).to_be_visible()
        figures = page.get_by_role("region", name="Figures over time")
        expect(figures.get_by_role("img")).to_have_count(5, timeout=180_000)
        loss = figures.get_by_role("img", name="loss: last 0.03125, between 0.03125 and 0.03125")
        expect(loss).to_be_visible()
        figures.scroll_into_view_if_needed()
        page.screenshot(path=tmp_path / f"{theme}.png")
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate(PALE) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        context.close()
