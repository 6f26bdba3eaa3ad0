"""The job list updates by itself, and its rows do not jump."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.portal.harness import TICKING, Portal, press_pair


def names(page: Page) -> list[str]:
    return [str(name) for name in page.locator("tr[data-job] a").all_text_contents()]


def test_a_job_appears_runs_and_ends_without_a_reload(page: Page, portal: Portal) -> None:
    page.goto("/")
    expect(page.get_by_text("No job has been submitted yet")).to_be_visible()
    page.evaluate("window.unchanged = true")
    job = portal.submit("newcomer", devices=2)
    row = page.locator(f"tr[data-job='{job}']")
    expect(row.locator("[data-state=running]").first).to_be_visible()
    expect(page.get_by_test_id("cluster-map").locator(f"a[data-job='{job}']")).to_be_visible()
    portal.client.stop(job)
    expect(row.locator("[data-state=stopped]").first).to_be_visible()
    expect(page.get_by_test_id("cluster-map").locator("a[data-job]")).to_have_count(0)
    assert page.evaluate("window.unchanged")


def test_rows_stay_under_the_pointer_until_the_reader_asks(page: Page, portal: Portal) -> None:
    portal.submit("first", "true")
    page.goto("/")
    page.locator("tr[data-job]").first.hover()
    portal.submit("second", "true")
    more = page.get_by_role("button", name="1 new")
    expect(more).to_be_visible()
    assert names(page) == ["first"]
    more.click()
    expect(page.locator("tr[data-job] a").first).to_have_text("second")


def test_the_line_of_an_array_opens_all_of_its_jobs(page: Page, portal: Portal) -> None:
    portal.submit("seeds", "true", more='"array": 8')
    page.goto("/")
    line = page.locator("tr[data-array]")
    line.hover()
    line.get_by_role("link").click()
    expect(page.locator("tr[data-job]")).to_have_count(8)
    expect(page.get_by_role("button", name="7 new")).to_have_count(0)


def test_filters_are_in_the_address_and_survive_a_reload(page: Page, portal: Portal) -> None:
    portal.submit("alpha", TICKING, more='"priority": "prod"')
    portal.client.wait(portal.submit("beta", "false"), timeout=240)
    page.goto("/")
    page.get_by_role("button", name="failed").click()
    expect(page.locator("tr[data-job]")).to_have_count(1)
    page.get_by_label("Search jobs by name or id").fill("bet")
    expect(page).to_have_url(re.compile(r"\?(q=bet&state=failed|state=failed&q=bet)$"))
    expect(page.get_by_role("button", name="corral ls --state failed --search bet")).to_be_visible()
    page.reload()
    expect(page.locator("tr[data-job]")).to_have_count(1)
    assert names(page) == ["beta"]
    page.get_by_label("Search jobs by name or id").fill("nothing like it")
    expect(page.get_by_text("No job matches")).to_be_visible()
    page.get_by_role("button", name="Show all jobs").click()
    expect(page.locator("tr[data-job]")).to_have_count(2)
    page.get_by_label("Priority", exact=True).select_option("prod and above")
    expect(page.locator("tr[data-job]")).to_have_count(1)
    assert names(page) == ["alpha"]
    expect(page.get_by_role("button", name="corral ls --min-priority 100")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Priority", exact=True)).to_have_value("prod")
    expect(page.locator("tr[data-job]")).to_have_count(1)
    assert names(page) == ["alpha"]
    page.get_by_label("Priority", exact=True).select_option("below 0 (oppo)")
    expect(page.get_by_text("No job matches")).to_be_visible()


def test_older_jobs_come_page_by_page_and_none_twice(page: Page, portal: Portal) -> None:
    for number in range(70):
        portal.submit(f"job-{number}", "true")
    page.goto("/")
    expect(page.locator("tr[data-job]")).to_have_count(60)
    page.get_by_role("button", name="Show older jobs").click()
    expect(page.locator("tr[data-job]")).to_have_count(70)
    assert len(set(names(page))) == 70


def test_the_first_page_says_why_the_next_job_waits(page: Page, portal: Portal) -> None:
    portal.submit("holder", replicas=4, devices=4)
    portal.submit("next-one", devices=2)
    page.goto("/")
    cluster = page.get_by_role("region", name="Cluster")
    expect(cluster).to_contain_text("Next to start")
    expect(cluster.get_by_role("link", name="next-one")).to_be_visible()
    expect(cluster).to_contain_text("16 of 16 held")
    portal.client.stop("holder")
    expect(cluster).to_contain_text("Nothing waits.")


def test_the_keyboard_is_enough(page: Page, portal: Portal) -> None:
    jobs = [portal.submit(name, "true") for name in ("one", "two", "three")]
    page.goto("/")
    expect(page.locator("tr[data-job]")).to_have_count(3)
    page.keyboard.press("/")
    expect(page.get_by_label("Search jobs by name or id")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Search jobs by name or id")).not_to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tr[aria-selected=true]")).to_have_attribute("data-job", jobs[1])
    expect(page).to_have_url(re.compile(f"job={jobs[1]}"))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Next row")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="two")).to_be_visible()
    page.keyboard.press("2")
    expect(page).to_have_url(re.compile("tab=log"))
    press_pair(page, "gn")
    expect(page).to_have_url(re.compile("/nodes$"))
    page.keyboard.press("c")
    expect(page.get_by_role("heading", name="Submit a job")).to_be_visible()


def test_addresses_that_lead_nowhere_say_what_to_do(page: Page, portal: Portal) -> None:
    page.goto("/nowhere")
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    page.goto("/jobs/no-such-job")
    expect(page.get_by_text("There is no such job")).to_be_visible()
    expect(page.get_by_role("button", name="corral ls")).to_be_visible()
