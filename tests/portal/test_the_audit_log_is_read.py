"""Administrators find lines of the audit log in the portal, by fields, by a press on a word, and as a file."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from corral.client import Client
from corral.kernel.errors import Forbidden, NotFound
from tests.portal.harness import Portal

NAME = "audited"


@pytest.fixture
def audited(portal: Portal) -> Iterator[Portal]:
    """An account that tried to make a group, and was refused."""
    portal.client.create_user(NAME)
    with Client(portal.url) as client:
        client.login(link=str(portal.client.login_link(NAME)["link"]))
        with pytest.raises(Forbidden):
            client.create_group("conspirators")
    yield portal
    with contextlib.suppress(NotFound):
        portal.client.delete_user(NAME)


def test_a_refusal_is_found_by_its_account_and_given_as_a_file(page: Page, audited: Portal) -> None:
    page.goto("/users")
    page.get_by_role("link", name="Audit log").click()
    page.get_by_label("By", exact=True).fill(NAME)
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_role("button", name="Only refused").click()
    expect(page).to_have_url(f"{audited.url}/audit?by={NAME}&refused=1")
    lines = page.get_by_role("table", name="Audit log").locator("tbody tr")
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text("group.change refused")
    expect(page.get_by_text(f"corral audit --by {NAME} --refused")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="These lines as CSV").click()
    (_, line) = csv.reader(io.StringIO(download.value.path().read_text()))
    assert (line[1:4], line[5]) == ([NAME, "group.change", "group:conspirators"], "no")

    page.get_by_role("button", name="Only refused").click()
    lines.get_by_role("button", name="group.change").click()
    expect(page.get_by_label("Action", exact=True)).to_have_value("group.change")
    page.get_by_label("By", exact=True).fill("nobody-of-this-name")
    page.get_by_label("By", exact=True).press("Enter")
    expect(page.get_by_text("There is no such line")).to_be_visible()
    page.go_back()
    expect(lines).to_have_count(1)


def test_a_job_is_opened_from_its_line(page: Page, portal: Portal) -> None:
    job = portal.submit("audited-job")
    page.goto(f"/audit?resource=job:{job}")
    line = page.get_by_role("table", name="Audit log").locator("tbody tr[data-action='job.submit']")
    line.get_by_role("link", name=f"Open job {job}").click()
    expect(page.get_by_role("heading", name="audited-job")).to_be_visible()
    page.goto("/audit?action=user")
    expect(page.get_by_role("table", name="Audit log").locator("tbody tr").first).to_be_visible()
    expect(page.get_by_role("link", name="Open job")).to_have_count(0)


def test_others_are_told_who_may_read_it(page_of: Callable[[str], Page]) -> None:
    page = page_of("curious")
    page.goto("/groups")
    expect(page.get_by_role("link", name="Groups")).to_be_visible()
    expect(page.get_by_role("link", name="Audit log")).to_have_count(0)
    page.goto("/audit")
    expect(page.get_by_role("alert")).to_contain_text("audit log")
