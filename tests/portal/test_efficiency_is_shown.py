"""What jobs asked for and used, in the portal: sums in sentences, and for each job the request that would have done."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.portal.harness import TICKING, Portal
from tests.waiting import pause


def measured(portal: Portal, name: str, cpu: int, *, queue: str = "default") -> str:
    """A job that asked for so many processors and used next to none, once figures of it are kept; its id."""
    worker = {"command": TICKING, "resources": {"devices": 2, "cpu": cpu, "memory": "4Gi"}}
    job = str(portal.client.submit(json.dumps({"name": name, "queue": queue, "roles": {"worker": worker}}))["id"])
    begun = time.monotonic()
    while not any(role["most"]["cpus"] is not None for role in _roles(portal, job)):  # it takes two looks at a task
        assert time.monotonic() - begun < 300, "nothing was measured of a task on the server's machine"
        time.sleep(pause(begun))
    portal.client.stop(job)  # a job that has just begun is told no smaller request
    assert portal.client.wait(job, timeout=240)["state"] == "stopped"
    return job


def _roles(portal: Portal, job: str) -> list[dict[str, Any]]:
    found = portal.client.efficiency_report()["items"]
    return [dict(role) for each in found if each["job"] == job for role in each["roles"]]


def test_jobs_are_summed_in_words_and_each_names_the_request_that_would_have_done(page: Page, portal: Portal) -> None:
    large = measured(portal, "large", 4)
    other = measured(portal, "other", 2, queue="research")
    page.goto("/usage")
    page.get_by_role("navigation", name="Usage").get_by_role("link", name="Efficiency").click()
    expect(page.get_by_role("list", name="Summary")).to_contain_text(re.compile(r"^Jobs held [\d.,]+ device-hours\."))
    row = page.locator(f"tr[data-efficiency='{large}']")
    expect(row).to_contain_text("large")
    expect(row).to_contain_text(re.compile(r"1 processor, 0\.25 GiB"))
    row.get_by_label("In words: large").press("Enter")
    expect(row.get_by_role("listitem").first).to_be_visible()
    expect(row).to_contain_text(re.compile(r"of 4 processors, [\d.]+ on average: 1 processor would have done\."))
    page.get_by_label("Queue", exact=True).select_option("research")
    expect(row).to_have_count(0)
    expect(page.locator(f"tr[data-efficiency='{other}']")).to_be_visible()
    expect(page.get_by_role("list", name="Summary")).to_contain_text("Jobs in research held")
    page.get_by_role("button", name="Mine").click()
    page.get_by_role("button", name="30 days").click()
    expect(page).to_have_url(f"{portal.url}/efficiency?queue=research&user=root&days=30")
    expect(
        page.get_by_text(re.compile(r"corral efficiency --user root --queue research --from .* --to "))
    ).to_be_visible()


def test_users_are_told_of_their_own_jobs_from_their_account(page_of: Callable[[str], Page], portal: Portal) -> None:
    portal.submit("strange", devices=1)
    page = page_of("iris")
    page.goto("/account")
    page.get_by_role("link", name="What your jobs used of what they asked for").click()
    expect(page).to_have_url(f"{portal.url}/efficiency?user=iris")
    expect(page.get_by_text("No job ran in this time")).to_be_visible()
    page.goto("/efficiency?user=root")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_text("strange")).to_have_count(0)
