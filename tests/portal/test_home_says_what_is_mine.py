"""Home says what needs its reader, what changed since the last visit, and how the reader's jobs and queues stand."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.portal.harness import Portal, press_pair
from tests.portal.monitored import alert, end_alerts, tell_alerts

TWO_HOURS_AGO = """for (const [key] of Object.entries(localStorage)) if (key.startsWith('corral.visit.'))
localStorage.setItem(key, JSON.stringify({ seen: Date.now() - 7_200_000, known: null }))"""


def test_a_failure_an_alert_running_jobs_and_their_queue_are_on_one_page(page: Page, portal: Portal) -> None:
    portal.client.wait(portal.submit("broken", "exit 3"), timeout=240)
    runs = portal.submit("runs", devices=2)
    tell_alerts(portal, alert("NodeNotReady", "fatal", "node1 does not answer.", minutes=3, node_name="node1"))
    try:
        page.goto("/home")
        needs = page.get_by_role("region", name="Needs you")
        expect(needs.get_by_role("link", name="broken")).to_be_visible()
        expect(needs).to_contain_text("node1 does not answer.")
        mine = page.get_by_role("region", name="Your jobs")
        expect(mine.get_by_role("listitem")).to_have_count(1)
        expect(mine.locator("[data-state=running]")).to_be_visible()
        queue = page.get_by_role("region", name="Your queues").locator("tr[data-queue=default]")
        expect(queue.get_by_role("cell").nth(2)).to_have_text("2")
        expect(page.get_by_role("button", name=re.compile("corral ls --user"))).to_be_visible()
        mine.get_by_role("link", name="runs").click()
        expect(page).to_have_url(re.compile(f"/jobs/{runs}$"))
    finally:
        end_alerts(portal)


def test_only_what_happened_since_the_last_visit_is_told_until_it_is_seen(page: Page, portal: Portal) -> None:
    page.goto("/home")
    changes = page.get_by_role("region", name="Since your last visit")
    expect(changes).to_contain_text("This is your first visit with this browser.")
    page.evaluate(TWO_HOURS_AGO)
    page.reload()
    expect(changes).to_contain_text("None of your jobs started or ended.")
    job = portal.submit("meanwhile")
    expect(changes.get_by_role("listitem")).to_contain_text("started")
    portal.client.stop(job)
    expect(changes.get_by_role("listitem")).to_contain_text("ended")
    changes.get_by_role("button", name="Seen").click()
    expect(changes).to_contain_text("None of your jobs started or ended.")
    page.reload()
    expect(changes).to_contain_text("None of your jobs started or ended.")


def test_other_peoples_jobs_are_not_on_home_and_two_keys_lead_there_and_back(page: Page, portal: Portal) -> None:
    theirs = portal.client
    theirs.create_user("neighbour", password="next door on corral")
    try:
        with type(theirs)(portal.url) as neighbour:
            neighbour.login(user="neighbour", password="next door on corral")
            neighbour.submit('{"name": "theirs", "roles": {"worker": {"command": "exit 3"}}}')
            neighbour.wait("theirs", timeout=240)
        page.goto("/")
        expect(page.get_by_role("region", name="Jobs").get_by_role("link", name="theirs")).to_be_visible()
        press_pair(page, "gh")
        expect(page).to_have_url(re.compile("/home$"))
        expect(page.get_by_role("region", name="Needs you")).to_contain_text("Nothing does")
        expect(page.get_by_role("region", name="Your jobs")).to_contain_text("None of your jobs runs or waits")
        press_pair(page, "gj")
        expect(page).to_have_url(re.compile("/$"))
    finally:
        portal.clear()
        theirs.delete_user("neighbour")


@pytest.mark.parametrize("hours", [-1, 1])
def test_ages_are_right_where_the_clock_of_the_browser_is_an_hour_off(page: Page, portal: Portal, hours: int) -> None:
    page.clock.set_system_time(datetime.now(UTC) + timedelta(hours=hours))
    job = portal.submit("just-begun")
    page.goto("/home")
    line = page.get_by_role("region", name="Your jobs").get_by_role("listitem").filter(has_text="just-begun")
    expect(line.locator("time")).to_have_text(re.compile(r"^(just now|\d+[sm] ago)$"))
    line.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(f"/jobs/{job}$"))
    expect(page.locator("[data-state=running]").first).to_be_visible()
    expect(page.locator("time").first).to_be_visible()
    ages = page.locator("time").all_inner_texts()
    assert not any(re.search(r"\d[hd]", each) for each in ages), ages
