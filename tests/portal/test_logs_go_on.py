"""The log tab of an evicted job: earlier output stays, and a single attempt can be selected."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE
from tests.waiting import pause

COMMAND = "trap 'exit 0' TERM; echo $CORRAL_ATTEMPT begins; sleep 1000 2>/dev/null & wait"


def suspended(portal: Portal, name: str) -> str:
    """A job that printed and was suspended."""
    job = portal.submit(name, COMMAND)
    portal.begun(job)
    portal.client.suspend(job)
    for _ in portal.client.events(after=0, job=job):
        if portal.client.job(job)["state"] == "waiting":
            return job
    raise AssertionError("the events ended")


def test_what_a_job_printed_before_it_yielded_is_there_and_goes_on(page: Page, portal: Portal) -> None:
    job = suspended(portal, "goes-on")
    page.goto(f"/jobs/{job}?tab=log")
    log = page.get_by_test_id("log")
    expect(log).to_contain_text(f"{job}.0.worker.0.0 begins")
    expect(page.get_by_label("Attempt", exact=True)).to_have_count(0)
    portal.client.resume(job)
    expect(log).to_contain_text(f"{job}.1.worker.0.0 begins")
    expect(log).to_contain_text("[corral: attempt 0.0 ended: Preempted (exit code -1003); attempt 1.0 follows]")
    expect(log).to_contain_text(f"{job}.0.worker.0.0 begins")
    page.get_by_label("Attempt", exact=True).select_option("0.0")
    expect(log).not_to_contain_text("1.worker.0.0 begins")
    expect(log).to_contain_text(f"{job}.0.worker.0.0 begins")
    expect(page.get_by_text("■ ended")).to_be_visible()
    assert "attempt=0.0" in page.url
    assert str(page.get_by_role("link", name="Download").get_attribute("href")).endswith("/logs?attempt=0.0")
    page.goto(f"/jobs/{job}")
    page.get_by_role("button", name="worker-0").click()
    page.get_by_role("link", name="Log of attempt 1.0 of worker-0").click()
    expect(log).to_contain_text(f"{job}.1.worker.0.0 begins")
    expect(log).not_to_contain_text("0.worker.0.0 begins\n")


def seconds_in(text: str) -> float:
    """The seconds of a length of time as the page writes it, such as `300ms` or `1m 5s`."""
    sizes = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    return sum(float(number) * sizes[unit] for number, unit in re.findall(r"([\d.]+)(ms|[smh])", text))


def test_waited_leaves_out_what_the_job_ran_and_was_suspended(page: Page, portal: Portal) -> None:
    job = suspended(portal, "slept")
    page.goto(f"/jobs/{job}")
    waited = page.locator("header dl div", has_text="Waited").locator("dd")
    detail = portal.client.job(job)
    assert detail["waitingSince"] is None and detail["waitedSeconds"] < 60
    portal.client.resume(job)
    expect(page.locator("header dl [data-state=running]")).to_be_visible()
    after = portal.client.job(job)
    assert after["waitingSince"] is None and after["waitedSeconds"] > detail["waitedSeconds"]
    begun, exact = time.monotonic(), 0.06 if after["waitedSeconds"] < 10 else 1.0
    while abs(seconds_in(waited.inner_text()) - after["waitedSeconds"]) > exact:
        assert time.monotonic() < begun + 60, "the page still has what it waited before"
        page.wait_for_timeout(1000 * pause(begun))


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1440, "light")])
def test_the_choice_of_an_attempt_fits_and_is_legible(
    browser: Browser, portal: Portal, watch: Watch, width: int, theme: Theme
) -> None:
    job = suspended(portal, "narrow")
    portal.client.resume(job)
    with open_context(browser, portal, width=width, theme=theme) as context:
        context.on("page", watch.attach)
        page = context.new_page()
        page.goto(f"/jobs/{job}?tab=log")
        expect(page.get_by_test_id("log")).to_contain_text("1.worker.0.0 begins")
        expect(page.get_by_label("Attempt", exact=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(PALE) == [] and page.evaluate(NAMELESS) == []
