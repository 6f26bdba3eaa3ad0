"""What the tasks of a gang checked before their commands began, on the page of their job."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Browser, Page, expect

from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE

WINDOWS: tuple[tuple[Theme, int], ...] = (("light", 390), ("dark", 1440))


def checked(portal: Portal, name: str, *checks: str) -> str:
    """A gang of two tasks that made these checks really, and has ended."""
    role = {"replicas": 2, "command": "true", "resources": {"cpu": "0.1"}}
    more = {"preflight": {"checks": list(checks), "timeoutSeconds": 400}} if checks else {}
    job = portal.client.submit(json.dumps({"name": name, "roles": {"worker": role}, **more}))["id"]
    assert portal.client.wait(job)["state"] == "succeeded"
    return str(job)


def test_the_network_and_the_machines_of_a_gang_are_shown(browser: Browser, portal: Portal, watch: Watch) -> None:
    job = checked(portal, "checked", "network", "platform")
    for theme, width in WINDOWS:
        with open_context(browser, portal, width=width, theme=theme) as context:
            context.on("page", watch.attach)
            page = context.new_page()
            page.goto(f"/jobs/{job}")
            network = page.get_by_role("region", name="Network before the start")
            expect(network).to_contain_text(re.compile(r"2 tasks measured 2 ways between them in [\d.]+ s"))
            expect(network.get_by_role("row", name=re.compile("^worker-0 worker-1 .*B.s"))).to_be_visible()
            expect(network.get_by_role("row", name=re.compile("^worker-1 worker-0 .*B.s"))).to_be_visible()
            machines = page.get_by_role("region", name="Machines before the start")
            row = machines.get_by_role("table", name="Machines").get_by_role("row", name=re.compile("^local.node"))
            expect(row.first).to_contain_text(re.compile(r"\d+ × "))
            assert page.evaluate(PALE) == []
            assert page.evaluate(NAMELESS) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_job_without_checks_shows_none(page: Page, portal: Portal) -> None:
    page.goto(f"/jobs/{checked(portal, 'unchecked')}")
    expect(page.get_by_role("region", name="Tasks")).to_be_visible()
    expect(page.get_by_role("region", name=re.compile("before the start$"))).to_have_count(0)
