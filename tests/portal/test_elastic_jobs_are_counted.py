"""The page, the list and the waiting list show an elastic job that runs with fewer tasks than requested."""

from __future__ import annotations

import json

from playwright.sync_api import Page, expect

from tests.portal.harness import Portal


def test_an_elastic_job_of_2_of_12_shows_what_it_holds_and_what_it_could_get(page: Page, portal: Portal) -> None:
    holder = portal.submit("holds", replicas=14, devices=1)
    next(iter(portal.client.log(holder, "worker", 13, follow=True)))
    role = {"replicas": {"min": 2, "max": 12}, "command": "sleep 1000", "resources": {"devices": 1}}
    job = portal.client.submit(json.dumps({"name": "grows", "roles": {"worker": role}}))["id"]
    page.goto(f"/jobs/{job}")
    devices = page.locator("header dl div", has_text="Devices").locator("dd")
    expect(devices).to_have_text("2 of 12")
    growth = page.get_by_role("region", name="What it could still get")
    expect(page.get_by_text("2 devices on 1 node")).to_be_visible()
    expect(growth).to_have_text(
        "It runs: 2 of 12 tasks. 10 more wait for room. One more task needs 1 device; 0 of 16 are free."
    )
    page.goto("/line")
    row = page.locator(f"tr[data-waiting='{job}']")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("10 devices in 10 tasks more")
    expect(page.get_by_text("1 job waiting")).to_be_visible()
    page.goto("/")
    expect(page.locator(f"tr[data-job='{job}']")).to_contain_text("2/12")
    portal.client.stop(holder)
    page.goto(f"/jobs/{job}")
    expect(devices).to_have_text("12")
    expect(growth).to_have_count(0)
