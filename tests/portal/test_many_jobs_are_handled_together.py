"""The list of jobs is set up by its reader: several jobs are stopped at once, columns are chosen, the list is a file."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable

from playwright.sync_api import Page, Route, expect

from tests.portal.harness import Portal, job_text


def test_chosen_jobs_are_stopped_together_with_the_keyboard_alone(page: Page, portal: Portal) -> None:
    first, second, third = (portal.submit(name) for name in ("one", "two", "three"))
    page.goto("/")
    expect(page.locator("tr[data-job]")).to_have_count(3)
    for job in (third, second):
        page.keyboard.press("j")
        expect(page.locator("tr[aria-selected=true]")).to_have_attribute("data-job", job)
        page.keyboard.press("x")
        expect(page.locator(f"tr[data-job='{job}']").get_by_role("checkbox")).to_be_checked()
    bar = page.get_by_role("group", name="Chosen jobs")
    expect(bar).to_contain_text("2 chosen")
    bar.get_by_role("button", name="Stop 2").press("Enter")
    dialog = page.get_by_role("dialog", name="Stop 2 jobs?")
    expect(dialog.get_by_role("listitem")).to_have_count(2)
    expect(dialog.get_by_role("button", name=f"corral stop {third} {second}")).to_be_visible()
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    for job in (second, third):
        expect(page.locator(f"tr[data-job='{job}'] [data-state=stopped]").first).to_be_visible()
    expect(page.locator(f"tr[data-job='{first}'] [data-state=stopped]")).to_have_count(0)
    expect(bar).to_have_count(0)


def test_a_refused_stop_is_told_and_the_others_are_stopped(portal: Portal, page_of: Callable[[str], Page]) -> None:
    theirs = portal.submit("not-yours")
    page = page_of("stopper")
    with portal.client.__class__(portal.url) as stopper:
        stopper.login(link=str(portal.client.login_link("stopper")["link"]))
        mine = str(stopper.submit(job_text("yours"))["id"])
    page.goto("/")
    expect(page.locator("tr[data-job]")).to_have_count(2)
    page.get_by_label("Choose all jobs of the list").check()
    page.get_by_role("button", name="Stop 2").click()
    dialog = page.get_by_role("dialog", name="Stop 2 jobs?")
    dialog.get_by_role("button", name="Stop 2 jobs").click()
    expect(dialog.get_by_role("alert")).to_contain_text("not-yours: ")
    expect(dialog.get_by_role("alert").get_by_role("listitem")).to_have_count(1)
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator(f"tr[data-job='{mine}'] [data-state=stopped]").first).to_be_visible()
    assert portal.client.job(theirs)["state"] in {"waiting", "starting", "running"}


def test_columns_that_a_reader_leaves_out_stay_out(page: Page, portal: Portal) -> None:
    portal.submit("any", "true")
    page.goto("/")
    expect(page.get_by_role("columnheader", name="Priority")).to_be_visible()
    page.get_by_role("button", name="Columns").press("Enter")
    page.get_by_role("checkbox", name="Priority").press("Space")
    expect(page.get_by_role("columnheader", name="Priority")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("columnheader", name="Queue")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Priority")).to_have_count(0)
    expect(page.locator("tr[data-job]")).to_have_count(1)
    cells = page.locator("tr[data-job] td").count()
    assert cells == page.get_by_role("columnheader").count()


def test_the_file_of_the_list_has_every_job_that_matches_and_not_only_those_shown(page: Page, portal: Portal) -> None:
    portal.submit("seeds", "true", more='"array": 3')
    portal.submit("other", "true")
    page.goto("/?q=seeds")
    expect(page.locator("tr[data-array]")).to_have_count(1)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export CSV").click()
    lines = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert len(lines) == 3
    assert all(re.match("seeds", line["name"]) for line in lines)


def test_of_hundreds_of_jobs_only_those_near_the_window_are_drawn(page: Page, portal: Portal) -> None:
    def many(route: Route) -> None:
        answer = route.fetch()
        found = answer.json()
        found["items"] = [{**found["items"][0], "id": f"many{n}", "name": f"many-{n}"} for n in range(260)]
        route.fulfill(response=answer, json=found)

    portal.submit("one", "true")
    page.route(re.compile(r"/api/v3/jobs\?.*arrays=true"), many)
    page.goto("/")
    expect(page.locator("table[aria-rowcount='261']")).to_be_visible()
    assert page.locator("tr[data-job]").count() < 150
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(page.locator("tr[aria-rowindex='261']")).to_be_visible()
    expect(page.locator("tr[aria-rowindex='2']")).to_have_count(0)
