"""The page of the server's own parts: state and version of each, for administrators."""

from __future__ import annotations

import os
import platform
import socket
import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

import corral
from tests.portal.harness import Portal
from tests.waiting import pause


def parts(portal: Portal) -> list[Any]:
    """The parts of the server once its scheduler has told of them: on a busy machine it may not do so within 2 s."""
    begun, found = time.monotonic(), list[Any]()
    while not any(each["kind"] == "engine" for each in found):
        assert time.monotonic() < begun + 200, found
        time.sleep(pause(begun))
        found = list(portal.client.server_parts()["items"])
    return found


def test_every_part_has_its_state_and_version(page: Page, portal: Portal) -> None:
    page.goto("/nodes")
    page.get_by_role("navigation", name="Nodes").get_by_role("link", name="Server").click()
    expect(page).to_have_url(f"{portal.url}/server")
    told = {f"{each['kind']}/{each['name']}": each for each in parts(portal)}
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
