"""Two jobs are compared: their facts, the lines of their documents, and their curves over each other."""

from __future__ import annotations

import json
import os
import re

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests import warm
from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE


def _loss(route: Route) -> None:
    """Answer with a curve of made-up values, as the series of a job that reported for a while."""
    answer = route.fetch()
    found = answer.json()
    values = [4.0, 3.0, 2.5]
    found["items"] = [{"family": "corral_job_loss", "labels": {}, "mean": values, "low": values, "high": values}]
    route.fulfill(response=answer, body=json.dumps(found))


def _terminal(portal: Portal, *words: str) -> tuple[int, str]:
    environment = {**os.environ, "CORRAL_URL": portal.url, "CORRAL_TOKEN": portal.client.token}
    done = warm.corral(["diff", *words], env=environment, seconds=240)
    return done.returncode, done.stdout + done.stderr


def test_two_jobs_are_chosen_and_compared_and_the_terminal_says_the_same(page: Page, portal: Portal) -> None:
    one = portal.submit("train-1", "echo one", more='"maxDuration": "1h"')
    two = portal.submit("train-2", "echo two", more='"maxDuration": "2h"')
    portal.submit("unlike-it", "true")
    for job in (one, two):
        portal.client.wait(job, timeout=240)
    page.route(re.compile(r"/api/v3/series\?"), _loss)
    page.goto(f"/jobs/{one}")
    page.get_by_role("link", name="Compare").click()
    offered = page.get_by_role("list", name="Jobs to compare with")
    expect(offered.get_by_role("listitem")).to_have_count(1)  # of a like name, and not the job itself
    offered.get_by_role("link", name="train-2").press("Enter")
    expect(page).to_have_url(re.compile(rf"/compare\?job={one}&with={two}$"))
    facts = page.get_by_role("table", name="Facts")
    expect(facts.get_by_role("row", name="State")).to_contain_text("succeeded")
    difference = page.get_by_role("region", name="Difference")
    expect(difference.locator("[data-diff=gone]").filter(has_text="echo one")).to_have_count(1)
    expect(difference.locator("[data-diff=came]").filter(has_text="echo two")).to_have_count(1)
    expect(difference.locator("[data-diff=came]").filter(has_text="7200")).to_have_count(1)
    picture = page.get_by_role("img", name="loss: train-1: last 2.5, train-2: last 2.5")
    expect(picture.locator("path")).to_have_count(2)
    expect(page.get_by_role("button", name=f"corral diff {one} {two}")).to_be_visible()
    code, said = _terminal(portal, one, two, "--exit-code")
    assert code == 1
    assert any(line.startswith("-") and "echo one" in line for line in said.splitlines())
    assert any(line.startswith("+") and "echo two" in line for line in said.splitlines())
    assert _terminal(portal, one, one, "--exit-code") == (0, "There is no difference.\n")


def test_a_job_that_is_not_there_is_said_and_another_is_chosen(page: Page, portal: Portal) -> None:
    job = portal.submit("only-one", "true")
    page.goto(f"/compare?job={job}&with=1m83zzzzzzzzz")
    expect(page.get_by_role("alert")).to_contain_text("There is no job")
    page.goto(f"/compare?job={job}")
    expect(page.get_by_text("No other job is called so")).to_be_visible()
    page.get_by_role("searchbox").fill("only-o")
    expect(page.get_by_text("No other job is called so")).to_be_visible()


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1440, "light")])
def test_the_comparison_is_legible_and_named_and_fits(
    browser: Browser, portal: Portal, watch: Watch, width: int, theme: Theme
) -> None:
    one, two = portal.submit("a-rather-long-name-of-a-job-that-goes-on-1"), portal.submit("other", devices=1)
    with open_context(browser, portal, width=width, theme=theme) as context:
        context.on("page", watch.attach)
        page = context.new_page()
        page.route(re.compile(r"/api/v3/series\?"), _loss)
        page.goto(f"/compare?job={one}&with={two}")
        expect(page.get_by_role("img", name=re.compile("^loss: "))).to_be_visible()
        expect(page.get_by_role("region", name="Difference")).to_be_visible()
        assert page.evaluate(PALE) == []
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
