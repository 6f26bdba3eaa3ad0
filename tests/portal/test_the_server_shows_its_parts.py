"""The page of the server's own parts: state and version of each, for administrators."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Callable

from playwright.sync_api import Page, expect

import corral
from tests.portal.harness import Portal


def test_every_part_has_its_state_and_version(page: Page, portal: Portal) -> None:
    page.goto("/nodes")
    page.get_by_role("navigation", name="Nodes").get_by_role("link", name="Server").click()
    expect(page).to_have_url(f"{portal.url}/server")
    told = {f"{each['kind']}/{each['name']}": each for each in portal.client.server_parts()["items"]}
    machine = f"machine/{socket.gethostname()}"
    told = {name: each for name, each in told.items() if not name.startswith("containers/")}  # where Docker runs
    assert list(told) == ["front/front", "store/SQLite", "scheduler/scheduler", "engine/local", machine]
    rows = page.get_by_role("table", name="Parts of the server").locator(
        "tbody tr:not([data-server-part^='containers/'])"
    )
    expect(rows).to_have_count(len(told))
    for name, part in told.items():
        row = page.locator(f"[data-server-part='{name}']")
        expect(row).to_contain_text("works")
        expect(row).to_contain_text(part["version"] or "not told")
    assert told[machine]["version"] == os.uname().release
    expect(page.locator(f"[data-server-part='{machine}']")).to_contain_text(
        platform.freedesktop_os_release()["PRETTY_NAME"]
    )
    assert told["front/front"]["version"] == told["scheduler/scheduler"]["version"] == corral.__version__


def test_others_are_told_that_it_is_for_administrators(page_of: Callable[[str], Page], portal: Portal) -> None:
    page = page_of("passer")
    page.goto("/server")
    expect(page.get_by_role("alert")).to_contain_text("administrators-only")
