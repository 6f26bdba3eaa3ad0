"""Idle devices in the portal: which jobs waste them, what is done when, and how their owners get more time."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from corral.client import Client
from tests.portal.harness import Portal, job_text
from tests.portal.monitored import idle_spell


def running(portal: Portal, name: str, client: Client | None = None) -> str:
    """A job that holds two devices and has begun; its id."""
    made = str((client or portal.client).submit(job_text(name, devices=2))["id"])
    portal.begun(made)
    return made


def test_an_administrator_sees_what_is_wasted_what_comes_and_what_a_dry_run_reports(page: Page, portal: Portal) -> None:
    warned, stopped, dry = (running(portal, name) for name in ("hoarder", "ended", "tried"))
    idle_spell(portal, warned, 4)
    idle_spell(portal, stopped, 1, state="busy", action="stop", acts_at=0.0, acted_at=1e9, wasted_before=3600.0)
    idle_spell(portal, dry, 3, dry_run=True, action="shrink", idle=1)
    page.goto("/usage")
    page.get_by_role("navigation", name="Usage").get_by_role("link", name="Idle devices").click()
    now = page.get_by_role("table", name="Idle now").locator("tr[data-idle]")
    expect(now).to_have_count(1)
    expect(now).to_contain_text("hoarder")
    expect(now).to_contain_text(re.compile(r"▲ warned2 of 24h ago8\.\dis suspended in 1h"))
    expect(page.get_by_role("table", name="Over")).to_contain_text("✕ stopped")
    expect(page.get_by_role("table", name="Dry runs")).to_contain_text(
        re.compile(r"▲ reported1 of 23h ago3\.\dwould be shrunk to its minimum")
    )
    page.get_by_label("Search jobs").fill("tried")
    expect(page.locator("tr[data-idle]")).to_have_count(1)
    expect(page).to_have_url(f"{portal.url}/idle?q=tried")
    page.get_by_role("link", name="tried").click()
    notice = page.get_by_role("region", name="Idle devices")
    expect(notice).to_contain_text(re.compile(r"Dry run: 1 of its 2 devices is idle; 3\.\d device-hours are wasted\."))
    expect(notice.get_by_role("button")).to_have_count(0)
    page.goto(f"/jobs/{stopped}")
    expect(notice).to_contain_text("Because its devices were idle it was stopped")


def test_an_owner_is_told_on_the_jobs_page_and_asks_for_more_time_once(
    page_of: Callable[[str], Page], portal: Portal
) -> None:
    page = page_of("iris")
    with Client(portal.url) as iris:
        iris.login(link=str(portal.client.login_link("iris")["link"]))
        own, other, dry = running(portal, "hoarder", iris), running(portal, "strange"), running(portal, "tried", iris)
    for job in (own, other, dry):
        idle_spell(portal, job, 2, dry_run=job == dry)
    page.goto(f"/jobs/{own}")
    notice = page.get_by_role("region", name="Idle devices")
    expect(notice).to_contain_text(re.compile(r"2 of its 2 devices are idle; 4\.\d device-hours are wasted\."))
    expect(notice).to_contain_text("The job is suspended in 1h")
    notice.get_by_role("button", name="Ask for more time").press("Enter")
    dialog = page.get_by_role("dialog", name="More time for hoarder?")
    expect(dialog.get_by_label("Why it needs its devices")).to_be_focused()
    expect(dialog.get_by_role("button", name="Ask for it")).to_be_disabled()
    page.keyboard.type("the data is late")
    expect(dialog).to_contain_text("corral idle extend hoarder --reason 'the data is late'")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    page.goto("/idle")
    rows = page.locator("tr[data-idle]")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("the data is late")
    expect(page.get_by_role("button", name="more time")).to_have_count(0)
    (told,) = portal.client.idle_jobs(job=own)["items"]
    assert told["extendedAt"] and told["reason"] == "the data is late"
    lines = [each for each in portal.client.audit()["items"] if each["resource"] == f"job:{own}"]
    (line,) = [each for each in lines if each["action"] == "job.extend-idle"]
    assert (line["actor"], line["allowed"]) == ("iris", True)
    page.goto(f"/jobs/{dry}")
    expect(page.get_by_test_id("log")).to_contain_text("tick")
    expect(notice).to_have_count(0)
